// How llama-server in router mode reads its preset file and its cache, written down a second time from what was seen of it
// (build 11669), so that what the program renders is read by something that does not share its code.
import type { CachedModel, RouterModel } from "../../../src/plan/observed.ts";

const keyNames: Readonly<Record<string, string>> = { c: "ctx-size", LLAMA_ARG_CTX_SIZE: "ctx-size", m: "model" };

/** Sections by the id that the router registers; a line that it cannot parse throws, as it ends the router. */
export function readPresetAsRouter(text: string): Map<string, Map<string, string>> {
  if (text.startsWith("\uFEFF")) throw new Error("the router ends: byte order mark");
  const spelled = new Map<string, Map<string, string>>();
  let current: Map<string, string> | null = null;
  for (const line of text.split(/\r\n|\n|\r/)) {
    const header = /^\[([^\]]+)\][ \t]*(?:[;#].*)?$/s.exec(line);
    const entry = /^([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(.*)$/s.exec(line);
    if (header?.[1] !== undefined) {
      current = new Map();
      spelled.set(header[1], current);
    } else if (entry?.[1] !== undefined) {
      // Before any section: the model "default".
      if (!current && entry[1] !== "version") spelled.set("default", (current = new Map<string, string>()));
      current?.set(keyNames[entry[1]] ?? entry[1], (entry[2] ?? "").replace(/[ \t]*[;#].*$/s, "").trim());
    } else if (!/^[ \t]*(?:[;#]|$)/.test(line)) {
      throw new Error(`the router ends: ${JSON.stringify(line)}`);
    }
  }
  // Of two spellings of one id the last in order of bytes wins.
  const names = [...spelled.keys()].sort();
  return new Map(names.map((name) => [registered(name), spelled.get(name) ?? new Map<string, string>()]));
}

function registered(name: string): string {
  const colon = name.lastIndexOf(":");
  if (colon < 0) return name;
  const tag = name.slice(colon + 1);
  const at = Math.max(tag.lastIndexOf("-"), tag.lastIndexOf("."));
  const last = tag.slice(at + 1);
  return name.slice(0, colon + 1) + (/^[A-Za-z0-9_]+$/.test(last) ? last : tag).toUpperCase();
}

/** `GET /models`: what it finds in the cache by itself, and every section. A section without a source is a phantom: it throws. */
export function readAsRouter(text: string, cached: readonly CachedModel[], loaded: ReadonlySet<string>): RouterModel[] {
  const sections = readPresetAsRouter(text);
  const common = sections.get("*") ?? new Map<string, string>();
  const own = new Set(cached.flatMap((model) => model.routerId ?? []));
  const ids = new Set([...own, ...[...sections.keys()].filter((name) => name !== "*")]);
  return [...ids].sort().map((id) => {
    const section = sections.get(id) ?? new Map<string, string>();
    if (!own.has(id) && !["hf-repo", "model", "model-url"].some((key) => section.has(key)))
      throw new Error(`phantom model ${id}`);
    const values = new Map([...common, ...section]);
    const args = [...values].flatMap(([key, value]) => [`--${key}`, value]);
    return {
      id,
      value: loaded.has(id) ? "loaded" : "unloaded",
      failed: false,
      args: ["llama-server", "--alias", id, ...args],
      nCtx: loaded.has(id) ? Number(values.get("ctx-size") ?? 0) : null,
    };
  });
}
