// Test files that share a process: module loading cost half a second per file, a tenth of the run. Pure.

/** Files per process, by first folder; long areas first. Files of other areas get a process each. */
const areas = [
  { area: "engine", perProcess: 10 },
  { area: "contract", perProcess: 7 },
  { area: "http", perProcess: 11 },
  { area: "component", perProcess: 24 },
  { area: "unit", perProcess: 50 },
  { area: "repo", perProcess: 100 },
] as const;

export interface TestGroup {
  readonly name: string;
  readonly files: readonly string[];
}

/** `engine/queue.test.js` and its like, grouped. Neighbors by name go to different groups: they are often equally long. */
export function testGroups(files: readonly string[]): TestGroup[] {
  const grouped = areas.flatMap(({ area, perProcess }) => {
    const inArea = files.filter((file) => file.startsWith(`${area}/`)).toSorted();
    const groups = Math.ceil(inArea.length / perProcess);
    return Array.from({ length: groups }, (_, at) => ({
      name: `${area}-${at + 1}`,
      files: inArea.filter((_file, index) => index % groups === at),
    }));
  });
  const known = new Set(grouped.flatMap((group) => group.files));
  const single = files.filter((file) => !known.has(file)).toSorted();
  return [...single.map((file) => ({ name: file, files: [file] })), ...grouped];
}
