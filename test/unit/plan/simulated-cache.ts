// The model cache of a simulated machine: what pulls, imports and removals do to its files and to the inventory, as the handlers
// of the actions do it to real ones.
import { selectFiles } from "../../../src/cache/layout/select.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { inferTag, parseModelId, repoOf } from "../../../src/core/ids.ts";
import type { Removal } from "../../../src/desired/document/document.ts";
import { findCached } from "../../../src/plan/find-model.ts";
import type { FormerRevision, InventoryEntry, SourceFile } from "../../../src/plan/observed.ts";
import { coversEntry } from "../../../src/plan/removals.ts";
import { absolutePath, cacheOf, inventoryEntry, mainCommit, otherCommit, type WorldFile } from "./world.ts";

/** Paths by repository. */
export type Hub = Readonly<Record<string, readonly string[]>>;

export function createSimulatedCache(options: {
  readonly hub: Hub;
  readonly files: readonly WorldFile[];
  readonly inventory: readonly InventoryEntry[];
}) {
  let files = [...options.files];
  let inventory = [...options.inventory];
  let unreadable: readonly string[] = [];
  const scan = lastOnly(cacheOf);
  const cache = () => scan(files, unreadable, inventory);

  /** Whether other files took the place of those that the inventory has. */
  function pull(id: string, revision: string | undefined): boolean {
    const parsed = parseModelId(id);
    const tree = parsed ? options.hub[repoOf(parsed)] : undefined;
    if (!parsed || !tree) throw new GatewayError("hub_not_found", `${id} is not on the hub`);
    const { model } = selectFiles(
      repoOf(parsed),
      parsed.tag,
      tree.map((path) => ({ path, size: 1000, oid: "" })),
    );
    return add(
      id,
      model.map((file) => file.path),
      revision,
    );
  }

  function add(id: string, paths: readonly string[], revision = "main", source?: SourceFile): boolean {
    const commit = revision === "main" ? mainCommit : otherCommit;
    const repo = id.slice(0, id.indexOf(":"));
    const isNew = (file: WorldFile): boolean =>
      !(file.repo === repo && file.commit === commit && paths.includes(file.path));
    // A blob is one file, whichever revisions link it: here it goes by the path.
    const healed = files.map((file) =>
      file.repo === repo && paths.includes(file.path)
        ? { repo, path: file.path, commit: file.commit, size: 1000 }
        : file,
    );
    files = [...healed.filter(isNew), ...paths.map((path) => ({ repo, path, commit, size: 1000 }))];
    const known = inventory.find((entry) => entry.id === id);
    const keep = known?.keep ?? false;
    inventory = [
      ...inventory.filter((entry) => entry.id !== id),
      {
        ...inventoryEntry(id, paths, keep),
        revision,
        commit,
        ...(known && { former: revisionsOf(known) }),
        ...(source && { source: { path: source.path, stamp: source.stamp } }),
      },
    ];
    return !paths.every((path) => known?.files.some((file) => file.path === path));
  }

  function remove(id: string): void {
    const entry = inventory.find((other) => other.id === id);
    if (!entry) throw new Error(`${id} is removed, but is not in the inventory`);
    if (entry.keep) throw new Error(`${id} is removed, but kept`);
    const links = findCached(cache().models, id)?.files ?? [];
    for (const file of files.filter((other) => links.includes(absolutePath(other)))) {
      if (!entry.files.some(({ path }) => path === file.path))
        throw new Error(`${file.path} is deleted, but is not ours`);
    }
    const commits = inventory
      .filter((other) => other.repo === entry.repo)
      .flatMap((other) => revisionsOf(other).map(({ commit }) => commit));
    const paths = revisionsOf(entry).flatMap((revision) => revision.files.map(({ path }) => path));
    files = files.filter(
      (file) => file.repo !== entry.repo || !commits.includes(file.commit) || !paths.includes(file.path),
    );
    inventory = inventory.filter((other) => other !== entry);
  }

  return {
    cache,
    pull,
    remove,
    files: (): readonly WorldFile[] => files,
    inventory: (): readonly InventoryEntry[] => inventory,
    bring: (id: string, source: string): boolean => add(id, [importedName(id, source)], "main", sourceAt(source)),
    removeRequested: (removal: Removal): void => {
      files = files.filter((file) => file.repo !== removal.repo || !removal.files.includes(file.path));
      inventory = inventory.filter((entry) => !coversEntry(removal, entry));
    },
    /** As the gateway does after each pass. */
    noteLeft: (names: ReadonlySet<string> | null, now: number): void => {
      if (names === null || inventory.every(({ id, leftAt }) => names.has(id) === (leftAt === undefined))) return;
      inventory = inventory.map((entry) => {
        const { leftAt = new Date(now).toISOString(), ...rest } = entry;
        return names.has(entry.id) ? rest : { ...rest, leftAt };
      });
    },
    lose: (nth: number): void => {
      files = files.filter((_, index) => index !== nth % Math.max(1, files.length));
    },
    put: (file: WorldFile): void => {
      files = [...files.filter((other) => absolutePath(other) !== absolutePath(file)), file];
    },
    setUnreadable: (repos: readonly string[]): void => {
      unreadable = repos;
    },
    forget: (): void => {
      inventory = [];
    },
  };
}

/** Remembers the last answer: a world is observed many times between two changes. */
export function lastOnly<In extends readonly unknown[], Out>(make: (...input: In) => Out): (...input: In) => Out {
  let last: { readonly input: In; readonly output: Out } | null = null;
  return (...input) => {
    if (!last?.input.every((value, index) => value === input[index])) last = { input, output: make(...input) };
    return last.output;
  };
}

function revisionsOf(entry: InventoryEntry): readonly FormerRevision[] {
  const { commit, files, former = [] } = entry;
  return [{ commit, files }, ...former];
}

export function sourceAt(source: string): SourceFile & { readonly bytes: number } {
  return { path: `/sources/${source}`, stamp: "1000:0", bytes: 1000 };
}

/** As an import names the file, so that it is found under the id. */
function importedName(id: string, source: string): string {
  const parsed = parseModelId(id);
  const file = source.slice(source.lastIndexOf("/") + 1);
  if (!parsed || inferTag(file).toLowerCase() === parsed.tag.toLowerCase()) return file;
  const plain = `${parsed.name}-${parsed.tag}.gguf`;
  return inferTag(plain).toLowerCase() === parsed.tag.toLowerCase() ? plain : `${parsed.tag}.gguf`;
}
