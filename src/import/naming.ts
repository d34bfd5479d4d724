// Ids for models that have none of the hub's form, and names that clients may go on using.
import { fileStem, inferTag, isRepo, parseModelId } from "../core/ids.ts";

const quantPattern = /^(?:UD-)?(?:I?Q\d\w*|TQ\d\w*|B?F(?:16|32)|MXFP4\w*|NVFP4\w*)$/i;
const quantAtEnd = /[-._]((?:UD-)?(?:I?Q\d\w*|TQ\d\w*|B?F(?:16|32)|MXFP4\w*|NVFP4\w*))$/i;

export function isQuant(text: string): boolean {
  return quantPattern.test(text);
}

/** A quant at the end of a name, and what is before it. */
export function splitQuant(text: string): { readonly name: string; readonly quant: string | null } {
  const quant = quantAtEnd.exec(text)?.[1];
  return quant === undefined
    ? { name: text, quant: null }
    : { name: text.slice(0, -quant.length - 1), quant: quant.toUpperCase() };
}

/** `owner/name:tag`, with other characters than an id may have replaced. */
export function idOf(owner: string, name: string, tag: string): string {
  const fit = (text: string, rest: RegExp): string =>
    text
      .replaceAll(rest, "-")
      .replaceAll(/-{2,}/g, "-")
      .replaceAll(/\.{2,}/g, ".")
      .replaceAll(/^[^A-Za-z0-9]+|[-. ]+$/g, "")
      .slice(0, 100) || "model";
  return `${fit(owner, /[^\w.-]/g)}/${fit(name, /[^\w.-]/g)}:${fit(tag, /[^\w.+@-]/g)}`;
}

/** For a GGUF file: that of the hub where it lies in a cache of the hub's layout, which needs no `source`. */
export function idOfFile(path: string): { readonly id: string; readonly isCached: boolean } {
  const cached = /[\\/]models--([^\\/]+?)--([^\\/]+)[\\/]snapshots[\\/][^\\/]+[\\/](.+)$/.exec(path);
  const repo = cached ? `${cached[1]}/${cached[2]}` : "";
  if (isRepo(repo)) return { id: `${repo}:${inferTag(cached?.[3]?.replaceAll("\\", "/") ?? "")}`, isCached: true };
  const stem = fileStem(path.replaceAll("\\", "/"));
  const { name, quant } = splitQuant(stem);
  return { id: idOf("local", name, quant ?? stem), isCached: false };
}

/** A name that no model has yet; the ids of one repository share their files, so the tag is what differs. */
export function unused(id: string, taken: ReadonlySet<string>, other: string): string {
  if (!taken.has(id.toLowerCase())) return id;
  const { owner = "", name = "" } = parseModelId(id) ?? {};
  const named = idOf(owner, name, other);
  for (let count = 2; ; count++) {
    const next = count === 2 ? named : `${named}-${count}`;
    if (!taken.has(next.toLowerCase())) return next;
  }
}

/** Whether a document may have it as an alias or a variant's name. */
export function isName(text: string): boolean {
  return text.length <= 200 && /^[A-Za-z0-9_][A-Za-z0-9_./:+@-]*$/.test(text);
}
