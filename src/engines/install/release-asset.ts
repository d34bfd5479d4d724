// Owns choosing an archive from a listing of releases: by pattern, as the names changed over time.
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
const plainWords = new Set(["llama", "whisper", "cpp", "bin", "cpu", "release", "avx2"]);
const archiveEnding = /\.(zip|tar\.gz|tgz|tar\.xz)$/;

/**
 * The newest release's archive for the platform (Node's `platform` and `arch`) with the CPU backend (Metal on macOS is in the
 * plain one), or why there is none. A release without it is passed over: archives appear some time after their release.
 */
export function chooseAsset(listing: unknown, platform: string, arch: string): ReleaseAsset | string {
  const releases = (Array.isArray(listing) ? listing : [listing]).filter(isJsonObject);
  let withoutDigest: string | undefined;
  for (const release of releases) {
    const tag = release["tag_name"];
    const assets = release["assets"];
    if (typeof tag !== "string" || !Array.isArray(assets) || release["draft"] === true) continue;
    for (const asset of assets
      .filter(isJsonObject)
      .filter((entry) => fits(entry["name"], platform, arch))
      .sort(simplerFirst)) {
      const { name, browser_download_url: url, size, digest } = asset;
      if (typeof name !== "string") continue;
      const sha256 = typeof digest === "string" ? /^sha256:([0-9a-f]{64})$/i.exec(digest)?.[1] : undefined;
      if (sha256 === undefined) withoutDigest ??= name;
      else if (typeof url === "string") {
        return { tag, name, url, size: typeof size === "number" ? size : 0, sha256: sha256.toLowerCase() };
      }
    }
  }
  if (withoutDigest !== undefined) return `the listing has no SHA-256 digest for ${withoutDigest}`;
  return `no release has an archive for ${platform} ${arch}`;
}

function fits(name: unknown, platform: string, arch: string): boolean {
  if (typeof name !== "string" || !archiveEnding.test(name)) return false;
  const words = wordsOf(name);
  const system = Object.keys(systems).find((key) => words.some((word) => systems[key]?.includes(word)));
  // whisper.cpp's archives for Windows name no system: whisper-bin-x64.zip.
  if ((system ?? (name.endsWith(".zip") ? "win32" : undefined)) !== platform) return false;
  if (!words.some((word) => architectures[arch]?.includes(word))) return false;
  return words.every((word) => isPlain(word, platform, arch));
}

function isPlain(word: string, platform: string, arch: string): boolean {
  if (plainWords.has(word) || /^[bv]?\d+$/.test(word)) return true;
  return systems[platform]?.includes(word) === true || architectures[arch]?.includes(word) === true;
}

function wordsOf(name: string): string[] {
  const stem = name.toLowerCase().replace(archiveEnding, "").replaceAll("x86_64", "x64");
  return stem.split(/[-_.]/).filter((word) => word !== "");
}

function simplerFirst(a: Record<string, unknown>, b: Record<string, unknown>): number {
  return wordsOf(String(a["name"])).length - wordsOf(String(b["name"])).length;
}
