// Words that should not come back, in code, messages and docs: readers whose second language is English stumble over them.
// Part of `npm run check`.
import { projectFiles, readProjectFile } from "../support/project-files.ts";

/** With what to write instead. */
const unwanted: readonly (readonly [RegExp, string])[] = [
  [/\bgainsa(?:y|id)\w*/gi, "contradict"],
  [/\banew\b/gi, "again"],
  [/\bwhoever\b/gi, "the noun: a client, a caller, a process"],
  [/\bin vain\b/gi, "without a result"],
  [/\btold of\b/gi, "notified of, listed"],
  [/\bhas no end\b/gi, "exceeds the limit, is endless"],
  [/\b(?:nobody|somebody)\b/gi, "the noun: no client, another program"],
  [/\b(?:he|him|his|himself)\b/gi, "it, its"],
  [/\b(?:waits?|waiting|stands?|queue[sd]?) in line\b/gi, "queue"],
  [/\b\w*licence\w*/gi, "license"],
  [/catalogue/gi, "catalog"],
  [/colour|behaviour|neighbour|favour|honour/gi, "-or"],
  [
    /\w*(?:initial|normal|serial|organ|recogn|optim|summar|synchron|stabil|minim|maxim|util)is(?:e[ds]?|ing|ation)\b/gi,
    "-ize",
  ],
];

/** Findings that a room still has. A number only falls; a room that is not listed has none. */
const allowance: Readonly<Record<string, number>> = {
  "src/http": 15,
};

interface Finding {
  readonly place: string;
  readonly found: string;
  readonly better: string;
}

function findingsIn(path: string): Finding[] {
  return readProjectFile(path)
    .split("\n")
    .flatMap((line, index) =>
      unwanted.flatMap(([word, better]) =>
        (line.match(word) ?? []).map((found) => ({ place: `${path}:${index + 1}`, found, better })),
      ),
    );
}

/** A room of `src`, `schemas`, or the docs. */
function roomOf(path: string): string {
  const [, room = "docs"] = /^(src\/[a-z]+|schemas)/.exec(path) ?? [];
  return room;
}

const paths = projectFiles().filter((path) => /^(?:src|schemas)\/.*\.ts$/.test(path) || path.endsWith(".md"));
const rooms = new Map<string, Finding[]>();
for (const path of paths) {
  const room = roomOf(path);
  rooms.set(room, [...(rooms.get(room) ?? []), ...findingsIn(path)]);
}
for (const [room, findings] of rooms) {
  const allowed = allowance[room] ?? 0;
  if (findings.length <= allowed) continue;
  for (const { place, found, better } of findings) console.error(`${place}: "${found}"; better: ${better}`);
  console.error(`${room} has ${findings.length} unwanted words, ${allowed} are allowed`);
  process.exitCode = 1;
}
for (const [room, allowed] of Object.entries(allowance)) {
  const count = rooms.get(room)?.length ?? 0;
  if (count < allowed) console.log(`the allowance of ${room} can fall from ${allowed} to ${count}`);
}
console.log(`${paths.length} files, ${[...rooms.values()].flat().length} unwanted words`);
