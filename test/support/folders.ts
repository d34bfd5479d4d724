// The folders of a test's gateway: its state, and a model cache with models in it.
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linkSnapshot, writeRef } from "../../src/cache/download/link.ts";
import { blobPath } from "../../src/cache/layout/layout.ts";
import { inferTag } from "../../src/core/ids.ts";
import { cleanUp, type Ending } from "./clean-up.ts";
import { modelBytes, slowModel, talkingModel } from "./models.ts";

export interface GatewayFolders {
  readonly root: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly configPath: string;
  writeConfig(yaml: string): Promise<void>;
}

export async function makeFolders(t: Ending): Promise<GatewayFolders> {
  const root = await mkdtemp(join(tmpdir(), "gateway-"));
  cleanUp(t, () => rm(root, { recursive: true, force: true }));
  const stateDir = join(root, "state");
  const cacheDir = join(root, "hub");
  await mkdir(stateDir);
  await mkdir(cacheDir);
  const configPath = join(stateDir, "gateway.yaml");
  return { root, stateDir, cacheDir, configPath, writeConfig: (yaml) => writeFile(configPath, yaml) };
}

/** Puts a model file into the cache in the hub's layout, as another tool would have; answers with its path there. */
export async function cacheModel(
  folders: Pick<GatewayFolders, "cacheDir">,
  repo: string,
  file: string,
  bytes: Uint8Array,
): Promise<string> {
  const { cacheDir } = folders;
  const blob = createHash("sha256").update(bytes).digest("hex");
  const commit = createHash("sha1").update(repo).digest("hex");
  const path = blobPath(cacheDir, repo, blob);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, bytes);
  await linkSnapshot({ cacheDir, repo, commit, files: [{ path: file, blob, size: bytes.length }] });
  await writeRef(cacheDir, repo, "main", commit);
  return join(cacheDir, `models--${repo.replace("/", "--")}`, "snapshots", commit, file);
}

/** A talking model in the cache, named as its repository; answers with its id. */
export async function cacheTalker(
  folders: Pick<GatewayFolders, "cacheDir">,
  repo: string,
  name = repo,
  file = "model-Q8_0.gguf",
): Promise<string> {
  await cacheModel(folders, repo, file, modelBytes(talkingModel(name)));
  return `${repo}:${inferTag(file)}`;
}

/** The slow model of {@link makeTalkerFolders}. */
export const talker = "acme/talker:Q8_0";

/**
 * One thread: with two, which spin while they wait for each other, it falls to a tenth of its speed as soon as another test
 * keeps one core busy.
 */
export const talkerDocument = `version: 1\nmodels:\n  - { id: "${talker}", preset: { threads: 1 } }\n`;

/** Folders with a slow model, in the cache (`talkerFile`) and in the document. */
export async function makeTalkerFolders(t: Ending): Promise<GatewayFolders & { readonly talkerFile: string }> {
  const folders = await makeFolders(t);
  const bytes = modelBytes(slowModel("talker"));
  const talkerFile = await cacheModel(folders, "acme/talker", "talker-Q8_0.gguf", bytes);
  await folders.writeConfig(talkerDocument);
  return { ...folders, talkerFile };
}
