// Chooses an archive from a listing of releases, by the words of its name, as the names changed over time.
// Pure: the listing's JSON in, a choice or the reason for none out.
import { isJsonObject } from "../../core/json.ts";

export interface ReleaseAsset {
  readonly tag: string;
  readonly name: string;
  readonly url: string;
  /** Bytes. */
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

const systems: Readonly<Record<string, readonly string[]>> = {
  linux: ["ubuntu", "linux"],
  darwin: ["macos", "darwin", "osx"],
  win32: ["win", "windows"],
};
const architectures: Readonly<Record<string, readonly string[]>> = {
  x64: ["x64", "amd64"],
  arm64: ["arm64", "aarch64"],
};
/** Words that say nothing about what the archive needs; any other word is a backend or a variant. */
const plainWord = /^(?:llama|whisper|cpp|bin|cpu|release|avx2|[bv]?\d+)$/;
const archiveEnding = /\.(zip|tar\.gz|tgz|tar\.xz)$/;

/**
 * The newest release's archive for the platform (Node's `platform` and `arch`) with the CPU backend (Metal on macOS is in the
 * plain one), or why there is none. A release without it is passed over: archives appear some time after their release.
 */
export function chooseAsset(listing: unknown, platform: string, arch: string): ReleaseAsset | string {
  const fitting = assetsIn(listing).filter(({ name }) => fits(name, platform, arch));
  const chosen = fitting.find(({ sha256 }) => sha256 !== "");
  if (chosen) return chosen;
  const [first] = fitting;
  if (first) return `the listing has no SHA-256 digest for ${first.name}`;
  return `no release has an archive for ${platform} ${arch}`;
}

/** Of the newest release first; of one release those with the fewest words first. `sha256` may be empty. */
function assetsIn(listing: unknown): ReleaseAsset[] {
  const releases = (Array.isArray(listing) ? listing : [listing]).filter(isJsonObject);
  return releases.flatMap(({ tag_name: tag, assets, draft }) => {
    if (typeof tag !== "string" || !Array.isArray(assets) || draft === true) return [];
    const read = assets.filter(isJsonObject).flatMap(({ name, browser_download_url: url, size, digest }) => {
      if (typeof name !== "string" || typeof url !== "string") return [];
      const [, sha256 = ""] = /^sha256:([0-9a-f]{64})$/i.exec(typeof digest === "string" ? digest : "") ?? [];
      return [{ tag, name, url, size: typeof size === "number" ? size : 0, sha256: sha256.toLowerCase() }];
    });
    return read.toSorted((a, b) => wordsOf(a.name).length - wordsOf(b.name).length);
  });
}

function fits(name: string, platform: string, arch: string): boolean {
  const words = wordsOf(name);
  const ofSystem = systems[platform] ?? [];
  const ofArchitecture = architectures[arch] ?? [];
  // whisper.cpp's archives for Windows name no system: whisper-bin-x64.zip.
  const isForSystem = words.some((word) => ofSystem.includes(word)) || (platform === "win32" && name.endsWith(".zip"));
  return (
    archiveEnding.test(name) &&
    isForSystem &&
    words.some((word) => ofArchitecture.includes(word)) &&
    words.every((word) => plainWord.test(word) || ofSystem.includes(word) || ofArchitecture.includes(word))
  );
}

function wordsOf(name: string): string[] {
  const stem = name.toLowerCase().replace(archiveEnding, "").replaceAll("x86_64", "x64");
  return stem.split(/[-_.]/).filter((word) => word !== "");
}
