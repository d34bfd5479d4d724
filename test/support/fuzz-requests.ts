// Requests made from the table of operations: as described, nearly so, and not at all. Only data; nothing is sent here.
import fc from "fast-check";
import type { WireRequest } from "./fuzz-wire.ts";
import type { Operation } from "./operations.ts";

export interface FuzzRequest extends WireRequest {
  readonly operation: Operation;
  /** Method and path are those of the operation. */
  readonly isRouted: boolean;
  readonly key: "valid" | "wrong" | "none";
}

export interface FuzzWorld {
  readonly licenseKey: string;
  readonly prefixes: Readonly<Record<Operation["family"], readonly string[]>>;
  /** Names of models that are asked for. */
  readonly models: readonly string[];
  /** Names that are asked to embed. */
  readonly embedders: readonly string[];
  /** The names that may be deleted. */
  readonly victims: readonly string[];
  readonly repos: readonly string[];
}

/** Where each family is served. */
export const fuzzPrefixes: FuzzWorld["prefixes"] = {
  own: [""],
  native: ["/alpha/api", "/api"],
  compat: ["/beta/v1", "/v1", "/alpha/v1"],
  llama: ["/beta", ""],
  front: ["", "/alpha", "/beta"],
};

/** Whoever is deleted by these must be one that can be had again. */
const destructive = new Set(["removeModel", "nativeDelete"]);

const oddNumbers = [0, -1, 1.5, 1e308, -1e308, 2 ** 53, 2 ** 31, -0, 1e-320];
const oddTexts = [
  "",
  " ",
  "\u0000",
  "\ud800",
  "../../etc/passwd",
  "a\r\nb: c",
  "\u202e\u{1f600}\u0301",
  "x".repeat(20_000),
  "__proto__",
  "null",
];

const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, [], {}, ...oddNumbers, ...oddTexts),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.integer(),
  fc.double(),
  fc.jsonValue({ maxDepth: 3 }),
);

const oddBody: fc.Arbitrary<Buffer> = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.json({ maxDepth: 4 }).map((text) => Buffer.from(text)),
  fc
    .constantFrom(
      "",
      " ",
      "null",
      "[]",
      "{",
      "{}",
      '"model"',
      "\ufeff{}",
      '{"model":1e999}',
      "NaN",
      "[".repeat(30_000),
      `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
      `{"model":"${"m".repeat(100_000)}"}`,
      `[${"0,".repeat(20_000)}0]`,
    )
    .map((text) => Buffer.from(text)),
);

/** A member set to something odd, dropped, made up, or given twice. */
type Change =
  | { readonly kind: "set" | "twice"; readonly at: number; readonly value: unknown }
  | { readonly kind: "drop"; readonly at: number }
  | { readonly kind: "add"; readonly name: string; readonly value: unknown };

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constantFrom("set" as const, "twice" as const), at: fc.nat(20), value: oddValue }),
  fc.record({ kind: fc.constant("drop" as const), at: fc.nat(20) }),
  fc.record({ kind: fc.constant("add" as const), name: fc.string({ maxLength: 20 }), value: oddValue }),
);

/** JSON text, as duplicates have no other form. */
function changed(
  value: Readonly<Record<string, unknown>>,
  changes: readonly Change[],
  names: readonly string[],
): string {
  const members = Object.entries(value).map(([name, each]) => [name, each] as [string, unknown]);
  for (const each of changes) {
    if (each.kind === "add") {
      members.push([each.name, each.value]);
    } else if (each.kind === "drop") {
      members.splice(each.at % Math.max(1, members.length), 1);
    } else {
      // Also the members that the example leaves out.
      const name = names[each.at % Math.max(1, names.length)] ?? "model";
      const at = members.findIndex(([known]) => known === name);
      if (each.kind === "twice" || at < 0) members.push([name, each.value]);
      else members[at] = [name, each.value];
    }
  }
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${JSON.stringify(each) ?? "null"}`).join(",")}}`;
}

const jsonTypes = ["application/json", "application/json; charset=utf-8", "application/merge-patch+json"];
const otherTypes = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "nonsense",
  "",
];

function bodyOf({ id, request }: Operation, world: FuzzWorld): fc.Arbitrary<{ type: string; body: Buffer | null }> {
  const [content] = request;
  if (!content) {
    const sent = oddBody.map((body) => ({ type: "application/json", body }));
    return fc.oneof({ weight: 5, arbitrary: fc.constant({ type: "", body: null }) }, { weight: 1, arbitrary: sent });
  }
  if (content.mediaType === "multipart/form-data") {
    const form = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--x--\r\n';
    return fc.constantFrom(form, "--x", "").map((text) => ({
      type: "multipart/form-data; boundary=x",
      body: Buffer.from(text),
    }));
  }
  const pool = destructive.has(id) ? world.victims : /embed/i.test(id) ? world.embedders : world.models;
  const names = Object.keys(content.schema["properties"] ?? {});
  const examples = (content.schema["examples"] ?? [{}]) as readonly Readonly<Record<string, unknown>>[];
  const described = fc
    .tuple(
      fc.constantFrom(...examples),
      fc.constantFrom(...pool),
      fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 3, arbitrary: fc.array(change, { maxLength: 3 }) }),
      fc.boolean(),
    )
    .map(([example, model, changes, stream]) => {
      const named = Object.keys(example).some((name) => name === "model" || name === "source");
      const whole = {
        ...example,
        ...(named && "model" in example ? { model } : {}),
        ...("source" in example ? { source: model } : {}),
        ...("ctx_size" in example ? { ctx_size: 1024 } : {}),
        ...(names.includes("stream") ? { stream } : {}),
      };
      return Buffer.from(changed(whole, changes, names));
    });
  const type = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...jsonTypes) },
    { weight: 1, arbitrary: fc.constantFrom(...otherTypes) },
  );
  const body = fc.oneof({ weight: 4, arbitrary: described }, { weight: 1, arbitrary: oddBody });
  return fc.record({ type, body });
}

function queryOf({ query }: Operation, world: FuzzWorld): fc.Arbitrary<string> {
  const names = Object.keys(query?.["properties"] ?? {});
  const value = fc.oneof(
    fc.constantFrom("true", "false", "1", "2", "10", "", "new", "en", ...world.models, ...world.repos),
    fc.string({ unit: "grapheme", maxLength: 20 }),
    fc.constantFrom("-1", "1e9", "NaN", "a/b/c", "/", "%", "\u0000", "x".repeat(300)),
  );
  const name =
    names.length === 0
      ? fc.string({ maxLength: 10 })
      : fc.oneof(fc.constantFrom(...names), fc.string({ maxLength: 10 }));
  const odd = fc.array(fc.tuple(name, value), { maxLength: names.length === 0 ? 1 : 3 });
  const required = (query?.["required"] ?? []) as readonly string[];
  const proper = fc
    .constantFrom(...world.repos)
    .map((repo) => required.map((each) => [each, each === "repo" ? repo : "new"] as [string, string]));
  const pairs = required.length === 0 ? odd : fc.oneof(odd, proper);
  return pairs.map((list) => {
    const text = list
      // A wait is kept short: what is waited for may never come.
      .map(([key, each]) => `${encode(key)}=${encode(key === "timeout" ? "1" : each)}`)
      .join("&");
    const waits = names.includes("timeout") && text.includes("wait=") && !text.includes("timeout=");
    if (text === "") return "";
    return `?${text}${waits ? "&timeout=1" : ""}`;
  });
}

/** Lone surrogates have no encoding. */
function encode(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}

const brokenPaths = ["/", "//", "/%zz", "/%00", "/../status", "/%2e%2e/x", "/;x", `/${"y".repeat(3000)}`, "/\u00e9"];

function pathOf(operation: Operation, world: FuzzWorld): fc.Arbitrary<{ path: string; isRouted: boolean }> {
  const parameter = fc.oneof(
    fc.constantFrom(...world.models),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
    fc.constantFrom("x".repeat(500), "%", "sha256:00"),
  );
  const prefix = fc.constantFrom(...world.prefixes[operation.family]);
  const whole = fc.tuple(prefix, parameter).map(([start, each]) => ({
    path: `${start}${operation.path.replace(/\{[^}]*\}/g, encode(each))}` || "/",
    isRouted: true,
  }));
  const broken = fc.tuple(whole, fc.constantFrom(...brokenPaths)).map(([{ path }, end]) => ({
    path: Buffer.from(path + end, "utf8").toString("latin1"),
    isRouted: false,
  }));
  return fc.oneof({ weight: 19, arbitrary: whole }, { weight: 1, arbitrary: broken });
}

export function fuzzRequest(operations: readonly Operation[], world: FuzzWorld): fc.Arbitrary<FuzzRequest> {
  const method = fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS");
  return fc.constantFrom(...operations).chain((operation) =>
    fc
      .record({
        at: pathOf(operation, world),
        query: queryOf(operation, world),
        sent: bodyOf(operation, world),
        method: fc.oneof(
          { weight: 19, arbitrary: fc.constant<string>(operation.method) },
          { weight: 1, arbitrary: method },
        ),
        key: fc.constantFrom(
          "valid" as const,
          "valid" as const,
          "valid" as const,
          "valid" as const,
          "wrong" as const,
          "none" as const,
        ),
        condition: fc.oneof(
          { weight: 9, arbitrary: fc.constant("") },
          { weight: 1, arbitrary: fc.constantFrom('"0"', "*", "nonsense") },
        ),
      })
      .map(({ at, query, sent, method, key, condition }) => {
        const isOther = method !== operation.method;
        // Another method with the same path may be one that deletes.
        const body = isOther ? null : sent.body;
        return {
          operation,
          isRouted: at.isRouted && !isOther,
          key,
          method,
          path: at.path + query,
          body,
          headers: {
            ...(body === null || sent.type === "" ? {} : { "content-type": sent.type }),
            ...(key === "none" ? {} : { authorization: `Bearer ${key === "valid" ? world.licenseKey : "wrong"}` }),
            ...(condition === "" ? {} : { "if-match": condition, "last-event-id": condition }),
          },
        };
      })
      // What is no HTTP is answered with a body, which nobody expects after HEAD.
      .filter((request) => request.method !== "HEAD" || /^[\x21-\x7e]+$/.test(request.path)),
  );
}
