// A gateway.yaml with other values in it: its comments, its order and each line that did not change stay as they are. Pure.
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type ParsedNode,
  parseDocument,
  Scalar,
  visit,
  YAMLMap,
  YAMLSeq,
} from "yaml";
import { equalJson, isJsonObject, type Json } from "../../core/json.ts";
import { type Change, listChanges } from "../../core/merge-patch.ts";
import type { PresetAllow } from "../../core/preset-keys.ts";
import type { DocumentTree } from "./document.ts";
import { parseSource } from "./parse.ts";
import { patchLines } from "./patch-lines.ts";

/** The text as the tree has it; null where it cannot be had: the text is none of a document, or an alias stands for several of its values. */
export function editText(text: string, tree: DocumentTree, presetAllow: PresetAllow): string | null {
  const unix = text.replaceAll("\r\n", "\n");
  const now = parseSource(unix, presetAllow);
  const document = parseDocument(unix, { keepSourceTokens: true });
  if (!now.ok || hasAlias(document)) return null;
  const before = render(document, unix);
  for (const change of listChanges(now.tree, tree)) edit(document, change);
  const whole = render(document, unix);
  const edited = [patchLines(unix, before, whole), whole].find(
    (each) => each !== null && isTextOf(each, tree, presetAllow),
  );
  return (text === unix ? edited : edited?.replaceAll("\n", "\r\n")) ?? null;
}

function isTextOf(text: string, tree: DocumentTree, presetAllow: PresetAllow): boolean {
  const parsed = parseSource(text, presetAllow);
  return parsed.ok && equalJson(parsed.tree, tree);
}

function hasAlias(document: AnyDocument): boolean {
  let found = false;
  visit(document, { Alias: () => ((found = true), visit.BREAK) });
  return found;
}

type AnyDocument = Document<ParsedNode>;

/** As its author has indented it. */
function render(document: AnyDocument, text: string): string {
  const indent = /^\S[^\n]*:[^\n]*\n(?: *#[^\n]*\n)*( +)\S/m.exec(text)?.[1]?.length ?? 2;
  return document.toString({
    lineWidth: 0,
    indent,
    indentSeq: !/^\S[^\n]*:[^\n]*\n(?: *#[^\n]*\n)*- /m.test(text),
    flowCollectionPadding: !/\{[^\s}]/.test(text),
  });
}

function edit(document: AnyDocument, { path, after }: Change): void {
  const [key = "", id, ...rest] = path;
  if (key !== "models") return setIn(document, rootOf(document), path, after);
  if (id === undefined)
    return setIn(document, rootOf(document), ["models"], after === undefined ? undefined : listOf(after));
  const models = modelsOf(document);
  const index = models.items.findIndex((item) => idOf(item) === id);
  if (index < 0) {
    if (after !== undefined)
      models.add(document.createNode(entryOf(id, rest.length === 0 ? after : nest(rest, after))));
  } else if (rest.length > 0) setIn(document, mapAt(models, index), rest, after);
  else if (after === undefined) {
    models.delete(index);
    // A list of lines without indent would be `[]` below its comment, where it is no YAML.
    if (models.items.length === 0) models.flow = true;
  } else models.set(index, document.createNode(entryOf(id, after)));
}

function setIn(document: AnyDocument, map: YAMLMap, path: readonly string[], value: Json | undefined): void {
  const [key = "", ...rest] = path;
  if (rest.length === 0) {
    if (value === undefined) map.delete(key);
    else setValue(document, map, key, value);
    return;
  }
  const inner = map.get(key, true);
  if (isMap(inner)) setIn(document, inner, rest, value);
  else if (value !== undefined) map.set(key, document.createNode(nest(rest, value)));
}

/** A scalar keeps its comment, and a list its items that stay, with theirs. */
function setValue(document: AnyDocument, map: YAMLMap, key: string, value: Json): void {
  const old = map.get(key, true) as Node | undefined;
  if (isSeq(old) && Array.isArray(value)) return setItems(document, old, value as readonly Json[]);
  const node = document.createNode(value) as Node;
  if (isScalar(old) && isScalar(node)) {
    node.comment = old.comment ?? null;
    node.commentBefore = old.commentBefore ?? null;
  }
  // Lists of words are short: in one line, as the docs have them.
  if (isSeq(node)) node.flow = true;
  map.set(key, node);
}

function setItems(document: AnyDocument, list: YAMLSeq, values: readonly Json[]): void {
  const left = list.items as Node[];
  list.items = values.map((value) => {
    const index = left.findIndex((item) => equalJson(item.toJS(document) as Json, value));
    return index < 0 ? document.createNode(value) : left.splice(index, 1)[0];
  });
  if (list.items.length === 0) list.flow = true;
}

function rootOf(document: AnyDocument): YAMLMap {
  return document.contents as unknown as YAMLMap;
}

function modelsOf(document: AnyDocument): YAMLSeq {
  const root = rootOf(document);
  const found = root.get("models", true);
  const own = isSeq(found) ? found : new YAMLSeq();
  root.set("models", own);
  // `[]` in one line becomes a list of lines with its first model.
  if (own.items.length === 0) own.flow = false;
  return own;
}

/** The model's map; one that is its id alone becomes a map, with the comments that it had. */
function mapAt(models: YAMLSeq, index: number): YAMLMap {
  const own = models.items[index];
  if (isMap(own)) return own;
  const map = new YAMLMap();
  const id = isScalar(own) ? own : new Scalar("");
  map.commentBefore = id.commentBefore ?? null;
  map.spaceBefore = id.spaceBefore ?? false;
  id.commentBefore = null;
  id.spaceBefore = false;
  map.set("id", id);
  models.items[index] = map;
  return map;
}

/** Of a model in the text. */
export function idOf(item: unknown): unknown {
  if (isScalar(item)) return item.value;
  return isMap(item) ? item.get("id") : undefined;
}

function listOf(models: Json): Json {
  return isJsonObject(models) ? Object.entries(models).map(([id, fields]) => entryOf(id, fields)) : models;
}

function entryOf(id: string, fields: Json): Json {
  return isJsonObject(fields) && Object.keys(fields).length > 0 ? { id, ...fields } : id;
}

function nest(path: readonly string[], value: Json | undefined): Json {
  return path.reduceRight<Json>((inner, key) => ({ [key]: inner }), value ?? null);
}
