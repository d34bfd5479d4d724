// Ollama's model store as Ollama writes it: manifests by name, and files named by their content.
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface OllamaModel {
  /** By kind of layer: `model`, `params`, `template`; several of a kind as a list. */
  readonly layers: Readonly<Record<string, Uint8Array | string | readonly (Uint8Array | string)[]>>;
  readonly config?: object;
}

/** Answers with the path of the file with these bytes. */
export function ollamaBlob(folder: string, bytes: Uint8Array | string): string {
  return join(folder, "blobs", `sha256-${createHash("sha256").update(bytes).digest("hex")}`);
}

/** `name`: `registry.ollama.ai/library/llama3.2/3b`, or the last two parts of one there. */
export async function putOllamaModel(folder: string, name: string, { layers, config }: OllamaModel): Promise<void> {
  async function layer(mediaType: string, bytes: Uint8Array | string) {
    const path = ollamaBlob(folder, bytes);
    await mkdir(join(folder, "blobs"), { recursive: true });
    await writeFile(path, bytes);
    return { mediaType, digest: path.slice(-71).replace("sha256-", "sha256:"), size: Buffer.from(bytes).length };
  }
  const all = Object.entries(layers).flatMap(([kind, each]) => [each].flat().map((bytes) => [kind, bytes] as const));
  const manifest = {
    schemaVersion: 2,
    mediaType: "application/vnd.docker.distribution.manifest.v2+json",
    config: await layer(
      "application/vnd.docker.container.image.v1+json",
      JSON.stringify({
        model_format: "gguf",
        model_family: "llama",
        model_type: "1.2B",
        file_type: "Q4_K_M",
        ...config,
      }),
    ),
    layers: await Promise.all(
      all.map(([kind, bytes]) => layer(`application/vnd.ollama.image.${kind}`, bytes as string)),
    ),
  };
  await putOllamaManifest(folder, name, JSON.stringify(manifest));
}

export async function putOllamaManifest(folder: string, name: string, text: string): Promise<void> {
  const parts = name.split("/");
  const path = join(folder, "manifests", ...(parts.length === 2 ? ["registry.ollama.ai", "library"] : []), ...parts);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, text);
}
