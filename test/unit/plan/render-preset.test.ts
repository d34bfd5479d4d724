// The preset file: what the router cannot read becomes a comment, what people wrote stays, what is ours comes and goes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isMarker, markedKeys, parsePreset, presetCtxSize, readEntry } from "../../../src/plan/preset-file.ts";
import { renderPreset, type WantedSection } from "../../../src/plan/render-preset.ts";
import { randomPreset, runs } from "./random-worlds.ts";
import { readAsRouter, readPresetAsRouter } from "./router-reading.ts";
import { knownOptions } from "./world.ts";

const star: WantedSection = { name: "*", values: new Map([["offline", "true"]]) };
const alpha = (size: string): WantedSection => ({
  name: "acme/alpha:Q8_0",
  values: new Map([
    ["ctx-size", size],
    ["hf-repo", "acme/alpha:Q8_0"],
  ]),
});

function render(
  text: string,
  wanted: readonly WantedSection[] = [star],
  known: ReadonlySet<string> | null = knownOptions,
): string {
  return renderPreset(parsePreset(text), wanted, known);
}

/** Anything that may stand in a file: lines that mean something to somebody, and any characters at all. */
const line = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "[*]",
      "[acme/alpha:Q8_0]",
      "[acme/alpha:q8_0]",
      "[acme/Qwen2.5:x-Q8_0]",
      "[open",
      "[]",
      "[a] b",
      " [in]",
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "ctx-size = 5",
      "c=6",
      "threads = 1 # one",
      "hf-repo = acme/x:Q4",
      "m = /x.gguf",
      "odd = 1",
      "version = 1",
      " threads = 2",
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "; note",
      " # note",
      "",
      "\t",
      "; model-gateway sets: threads ctx-size",
      "model-gateway sets: threads",
      "\uFFFD",
      "\u00a0",
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
);
const anyText = fc.oneof(
  fc
    .tuple(fc.array(line, { maxLength: 14 }), fc.constantFrom("\n", "\r\n", "\r"), fc.constantFrom("", "\uFEFF"))
    .map(([lines, end, start]) => start + lines.join(end)),
  fc.string({ unit: "binary", maxLength: 60 }),
);
const anyWanted = fc.subarray([
  star,
  alpha("4096"),
  {
    name: "acme/Qwen2.5:Q8_0",
    values: new Map([
      ["model", "/cache/q.gguf"],
      ["mmproj", "/cache/p.gguf"],
    ]),
  },
]);

function check<T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => void): void {
  fc.assert(fc.property(arbitrary, property), { ...runs, numRuns: 1000 });
}

test("rendering what was rendered changes nothing", () => {
  check(fc.tuple(anyText, anyWanted), ([text, wanted]) => {
    const once = render(text, wanted);
    assert.equal(render(once, wanted), once);
  });
});

test("the router can read whatever comes out, and finds no model without a source", () => {
  check(fc.tuple(anyText, anyWanted), ([text, wanted]) => {
    for (const entry of readAsRouter(render(text, wanted), [], new Set())) assert.ok(entry.id);
  });
});

test("every wanted key is in force as it was wanted, but for the source that a person named", () => {
  check(fc.tuple(anyText, anyWanted), ([text, wanted]) => {
    const sections = readPresetAsRouter(render(text, wanted));
    for (const { name, values } of wanted) {
      const section = sections.get(name);
      assert.ok(section, `no section ${name}`);
      for (const [key, value] of values)
        if (!["hf-repo", "model", "mmproj"].includes(key)) assert.equal(section.get(key), value);
      if (name !== "*") assert.ok(["hf-repo", "model", "model-url"].some((key) => section.has(key)));
    }
  });
});

test("every line that a person wrote is still there, as itself or as a comment", () => {
  check(fc.tuple(fc.oneof(anyText, randomPreset), anyWanted), ([text, wanted]) => {
    const left = render(text, wanted)
      .split("\n")
      .map((written) => written.replace(/^;+ ?/, "").trim());
    for (const { name, lines } of parsePreset(text).sections) {
      if (name !== null && markedKeys({ name, lines }).size === 0 && lines.length > 0) take(left, `[${name}]`);
      for (const written of lines) {
        const key = readEntry(written)?.key;
        const isOurs = isMarker(written) || (key !== undefined && markedKeys({ name, lines }).has(key));
        if (written.trim() !== "" && !isOurs) take(left, written.replace(/^;+ ?/, "").trim());
      }
    }
  });

  function take(left: string[], written: string): void {
    const at = left.indexOf(written);
    assert.ok(at >= 0, `lost: ${JSON.stringify(written)}`);
    left.splice(at, 1);
  }
});

const kept: readonly (readonly [why: string, before: string, after: string])[] = [
  [
    "a byte order mark goes",
    "\uFEFF; mine\n[*]\nthreads = 1\n",
    "; mine\n\n[*]\n; model-gateway sets: offline\noffline = true\nthreads = 1\n",
  ],
  [
    "lines end as the router reads them",
    "; mine\r\n[*]\r\nthreads = 1\r\n",
    "; mine\n\n[*]\n; model-gateway sets: offline\noffline = true\nthreads = 1\n",
  ],
  [
    "a lone carriage return ends a line for the router",
    "; mine\rgarbage\n[*]\n",
    "; mine\n; garbage\n\n[*]\n; model-gateway sets: offline\noffline = true\n",
  ],
  [
    "dots in a section's name",
    "; mine\n\n[acme/Qwen2.5-7B:Q4]\nctx-size = 9\n",
    "; mine\n\n[acme/Qwen2.5-7B:Q4]\n; model-gateway sets: hf-repo\nhf-repo = acme/Qwen2.5-7B:Q4\nctx-size = 9\n\n[*]\n; model-gateway sets: offline\noffline = true\n",
  ],
  [
    "of two sections of one name the later stays",
    "; mine\n[a/b:Q8_0]\nthreads = 1\nmodel = /x\n[a/b:x-q8_0]\nthreads = 2\nmodel = /x\n",
    "; mine\n\n; replaced by the later section of the same name:\n; [a/b:Q8_0]\n; threads = 1\n; model = /x\n\n[a/b:x-q8_0]\nthreads = 2\nmodel = /x\n\n[*]\n; model-gateway sets: offline\noffline = true\n",
  ],
  [
    "keys before the first section would be a model",
    "threads = 1\nversion = 1\n[*]\n",
    "; threads = 1\nversion = 1\n\n[*]\n; model-gateway sets: offline\noffline = true\n",
  ],
  [
    "a header that is none takes its keys along",
    "; mine\n[*]\nthreads = 1\n[a/b:Q4\nthreads = 2\nversion = 1\n",
    "; mine\n\n[*]\n; model-gateway sets: offline\noffline = true\nthreads = 1\n\n; [a/b:Q4\n; threads = 2\n; version = 1\n",
  ],
  [
    "a comment behind a header",
    "; mine\n[*] ; common\nthreads = 1\n",
    "; mine\n\n[*]\n; model-gateway sets: offline\noffline = true\n; common\nthreads = 1\n",
  ],
  [
    "an indented key, an unknown one, garbage",
    "; mine\n[*]\n  threads = 1\nodd = 2\n???\n",
    "; mine\n\n[*]\n; model-gateway sets: offline\noffline = true\n; threads = 1\n; odd = 2\n; ???\n",
  ],
  [
    "an empty section would be a phantom",
    "; mine\n[a/b:Q4]\n",
    "; mine\n\n; [a/b:Q4]\n\n[*]\n; model-gateway sets: offline\noffline = true\n",
  ],
  [
    "a section that is no model's name",
    "; mine\n[default]\nthreads = 1\n",
    "; mine\n\n; a section needs hf-repo or model:\n; [default]\n; threads = 1\n\n[*]\n; model-gateway sets: offline\noffline = true\n",
  ],
  [
    "a section with a source of its own",
    "; mine\n[mine]\nmodel = /x.gguf\nc = 512\n",
    "; mine\n\n[mine]\nmodel = /x.gguf\nc = 512\n\n[*]\n; model-gateway sets: offline\noffline = true\n",
  ],
  ["bytes that are no UTF-8", "; caf\uFFFD\n[*]\n", "; caf?\n\n[*]\n; model-gateway sets: offline\noffline = true\n"],
];

for (const [why, before, after] of kept) test(`kept: ${why}`, () => assert.equal(render(before), after));

test("a person's own context size stays in the section of a model without one of ours", () => {
  const text = "; mine\n\n[acme/alpha:Q8_0]\nctx-size = 777\nhf-repo = acme/alpha:Q8_0\n";
  assert.equal(presetCtxSize(parsePreset(render(text)), "acme/alpha:Q8_0"), 777);
});

test("a context size of ours goes over a person's own, which stays as a comment", () => {
  const text = render("[acme/alpha:Q8_0]\nctx-size = 777\nthreads = 2\n", [star, alpha("4096")]);
  assert.equal(presetCtxSize(parsePreset(text), "acme/alpha:Q8_0"), 4096);
  assert.match(text, /^; ctx-size = 777$/m);
  assert.match(text, /^threads = 2$/m);
});

test("of two wanted sections that the router takes for one the first goes into its section", () => {
  const text = render("", [star, alpha("1024")]);
  const two = render(text, [star, alpha("2048"), { ...alpha("4096"), name: "acme/alpha:q8_0" }]);
  assert.equal(presetCtxSize(parsePreset(two), "acme/alpha:Q8_0"), 2048);
});

test("a size that is not ours any more takes only our keys along", () => {
  const ours = render("", [star, alpha("4096")]);
  assert.equal(render(ours), render(""));
  const mixed = render(ours.replace("hf-repo =", "threads = 2\nhf-repo ="), [star, alpha("4096")]);
  const left = render(mixed);
  assert.match(left, /^threads = 2$/m);
  assert.doesNotMatch(left, /ctx-size/);
});

test("a person who takes the marker away takes the keys over", () => {
  const taken = render("", [star, alpha("4096")]).replace("; model-gateway sets: ctx-size hf-repo\n", "");
  assert.equal(presetCtxSize(parsePreset(render(taken)), "acme/alpha:Q8_0"), 4096);
});

test("a person's own source goes before ours", () => {
  const text = render("[acme/alpha:Q8_0]\nm = /mine.gguf\n", [star, alpha("4096")]);
  const section = readPresetAsRouter(text).get("acme/alpha:Q8_0");
  assert.deepEqual(
    [section?.get("model"), section?.get("hf-repo"), section?.get("ctx-size")],
    ["/mine.gguf", undefined, "4096"],
  );
});

test("sections of models that could not be looked at keep what they have", () => {
  const text = render("", [star, alpha("4096")]);
  assert.equal(
    renderPreset(parsePreset(text), [star], knownOptions, (name) => name.startsWith("acme/alpha:")),
    text,
  );
});

test("without a list of options every key that can be parsed stays", () => {
  assert.match(render("[*]\nodd = 2\n", [star], null), /^odd = 2$/m);
});
