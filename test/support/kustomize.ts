// Resolves the project's overlays of kustomize: resources, generated ConfigMaps, JSON patches of objects by kind and name. Where the
// real one is installed, test/component/packaging/kubernetes.test.ts compares.
import assert from "node:assert/strict";
import { posix } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { readProjectFile } from "./project-files.ts";

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly [key: string]: unknown;
}

interface Kustomization {
  readonly resources?: readonly string[];
  readonly configMapGenerator?: readonly { readonly name: string; readonly files: readonly string[] }[];
  readonly patches?: readonly {
    readonly target: { readonly kind: string; readonly name: string };
    readonly patch: string;
  }[];
}

interface Operation {
  readonly op: "add" | "remove" | "replace";
  readonly path: string;
  readonly value?: unknown;
}

/** `folder`: from the project's root. Names of generated ConfigMaps have no hash. */
export function resolveOverlay(folder: string): readonly Manifest[] {
  const {
    resources = [],
    configMapGenerator = [],
    patches = [],
  } = parse(readProjectFile(`${folder}/kustomization.yaml`)) as Kustomization;
  const manifests = resources.flatMap((name) => {
    const path = posix.join(folder, name);
    return path.endsWith(".yaml")
      ? parseAllDocuments(readProjectFile(path)).map((document) => document.toJS() as Manifest)
      : resolveOverlay(path);
  });
  const generated = configMapGenerator.map(({ name, files }) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name },
    data: Object.fromEntries(files.map((file) => [file, readProjectFile(`${folder}/${file}`)])),
  }));
  for (const { target, patch } of patches) {
    const found = manifests.find(({ kind, metadata }) => kind === target.kind && metadata.name === target.name);
    assert.ok(found, `${folder} patches ${target.kind} ${target.name}, which is not there`);
    for (const operation of parse(patch) as readonly Operation[]) apply(found, operation);
  }
  return [...manifests, ...generated];
}

/** RFC 6902, as far as the overlays use it. */
function apply(document: object, { op, path, value }: Operation): void {
  const keys = path.split("/").slice(1);
  const last = keys.pop() ?? "";
  const parent = keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document) as Record<
    string,
    unknown
  >;
  assert.ok(typeof parent === "object" && parent !== null, `${path} has no parent`);
  if (op !== "add") assert.ok(last in parent, `${path} is not there`);
  if (op === "remove") delete parent[last];
  else if (Array.isArray(parent)) parent.push(value);
  else parent[last] = value;
}
