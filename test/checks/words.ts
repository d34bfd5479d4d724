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
  [/\b(?:no|some|every|any)body\b/gi, "the noun: no client, another program"],
  [/\blooks? at the world\b/gi, "pass, probe"],
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

const paths = projectFiles().filter((path) => /^(?:src|schemas)\/.*\.ts$/.test(path) || path.endsWith(".md"));
const findings = paths.flatMap(findingsIn);
for (const { place, found, better } of findings) console.error(`${place}: "${found}"; better: ${better}`);
console.log(`${paths.length} files, ${findings.length} unwanted words`);
if (findings.length > 0) process.exitCode = 1;
