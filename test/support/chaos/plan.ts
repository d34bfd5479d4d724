// One seed, one plan: which changes and faults come in which order and with which values. Pure.
import { between, pick, type Random, randomFrom, shuffled } from "../seeded.ts";
import { residents } from "./models.ts";

/** How a file is saved. */
export type SaveStyle = "write" | "rename" | "pieces";

export type Change =
  | { readonly kind: "file-size"; readonly model: string; readonly ctx: number; readonly style: SaveStyle }
  | { readonly kind: "file-default"; readonly ctx: number; readonly style: SaveStyle }
  | { readonly kind: "file-guest"; readonly style: SaveStyle }
  | { readonly kind: "file-broken"; readonly variant: number; readonly style: SaveStyle }
  | { readonly kind: "api-size"; readonly model: string; readonly ctx: number }
  | { readonly kind: "api-patch"; readonly model: string; readonly ctx: number }
  | { readonly kind: "api-eject"; readonly model: string }
  | { readonly kind: "api-unload"; readonly model: string }
  | { readonly kind: "api-repull"; readonly model: string; readonly ctx: number }
  | { readonly kind: "api-roster"; readonly wish: "add" | "rpc" | "single" | "remove" }
  | { readonly kind: "chat-size"; readonly model: string; readonly ctx: number }
  | { readonly kind: "pull-left"; readonly share: number };

export type Fault =
  | { readonly kind: "kill-model"; readonly model: string }
  | { readonly kind: "stop-model"; readonly model: string; readonly ms: number }
  | { readonly kind: "kill-router" }
  | { readonly kind: "stop-router"; readonly ms: number }
  | { readonly kind: "kill-gateway" }
  | { readonly kind: "term-gateway" }
  | { readonly kind: "cache-away"; readonly ms: number }
  | { readonly kind: "damage"; readonly file: DamagedFile; readonly text: string };

export type DamagedFile = "desired.json" | "last-applied.json" | "inventory.json" | "router.preset.ini";

export interface Step {
  readonly number: number;
  readonly change: Change | null;
  /** One; two of processes at once; or none. */
  readonly faults: readonly Fault[];
  /** ms from the change to the faults. */
  readonly afterMs: number;
  /** Afterwards the clients pause, and what the gateway holds is counted. */
  readonly rest: boolean;
}

/** Room for every client's answer at once, as they share it. */
const sizes = [2048, 2560, 3072, 4096, 5120, 6144];
const stepsBetweenRests = 8;
/** After more crashes in ten minutes the router's next start is put off for longer than a step may take. */
const routerKillsPerLife = 3;

/** What can be told of a change that its gateway does not outlive, or that waits for a cache that is away. */
const lasting: readonly Change["kind"][] = [
  "file-size",
  "file-default",
  "api-size",
  "api-patch",
  "api-eject",
  "api-unload",
  "api-repull",
  "api-roster",
];

/** What is in it twice comes twice as often. */
const changeKinds: readonly Change["kind"][] = [
  ...lasting,
  "file-size",
  "file-guest",
  "file-broken",
  "api-size",
  "api-roster",
  "chat-size",
  "pull-left",
];

const faultKinds: readonly Fault["kind"][] = [
  "kill-model",
  "kill-model",
  "stop-model",
  "kill-router",
  "kill-router",
  "stop-router",
  "kill-gateway",
  "kill-gateway",
  "term-gateway",
  "cache-away",
  "damage",
];

const outlivesGateway: ReadonlySet<Change["kind"]> = new Set(lasting);
const waitsForCache: ReadonlySet<Change["kind"]> = new Set(["file-size", "file-default", "api-size", "api-patch"]);

const ofProcesses: ReadonlySet<Fault["kind"]> = new Set(["kill-model", "stop-model", "kill-router", "stop-router"]);

function goesWith(change: Change["kind"], fault: Fault["kind"]): boolean {
  switch (fault) {
    case "damage":
      return false;
    case "cache-away":
      return waitsForCache.has(change);
    case "kill-gateway":
    case "term-gateway":
      return outlivesGateway.has(change);
    default:
      return change !== "pull-left" && change !== "file-guest";
  }
}

/** Without an end. Every kind comes once in a deck before any comes again. */
export function* chaosPlan(seed: number): Generator<Step, never> {
  const random = randomFrom(seed);
  let changes: Change["kind"][] = [];
  let faults: Fault["kind"][] = [];
  let routerKills = 0;
  for (let number = 1; ; number++) {
    // Alone or together, so that it is known what a change by itself does to answers: nothing.
    const shape = pick(random, ["change", "change", "change", "fault", "both", "both", "both", "faults"] as const);
    let change: Change["kind"] | null = null;
    if (shape === "change" || shape === "both") {
      if (changes.length === 0) changes = shuffled(random, changeKinds);
      change = changes.pop() ?? null;
    }
    const chosen: Fault["kind"][] = [];
    for (let count = { change: 0, fault: 1, both: 1, faults: 2 }[shape]; count > 0; count--) {
      if (faults.length === 0) faults = shuffled(random, faultKinds);
      const at = faults.findLastIndex((kind) => suits(kind, change, shape === "faults"));
      const [fault] = at === -1 ? [] : faults.splice(at, 1);
      if (fault === undefined || (fault === "kill-router" && ++routerKills > routerKillsPerLife)) continue;
      if (fault === "kill-gateway" || fault === "term-gateway" || fault === "damage") routerKills = 0;
      chosen.push(fault);
    }
    if (change === null && chosen.length === 0) chosen.push("kill-model");
    yield {
      number,
      change: change && changeOf(change, random),
      faults: chosen.map((fault) => faultOf(fault, random)),
      afterMs: between(random, 0, 300),
      rest: number % stepsBetweenRests === 0,
    };
  }
}

function suits(fault: Fault["kind"], change: Change["kind"] | null, isPair: boolean): boolean {
  return (change === null || goesWith(change, fault)) && (!isPair || ofProcesses.has(fault));
}

function changeOf(kind: Change["kind"], random: Random): Change {
  const model = pick(random, residents);
  const ctx = pick(random, sizes);
  const style = pick(random, ["write", "rename", "pieces"] as const);
  switch (kind) {
    case "file-size":
      return { kind, model, ctx, style };
    case "file-default":
      return { kind, ctx, style };
    case "file-guest":
      return { kind, style };
    case "file-broken":
      return { kind, variant: between(random, 0, 4), style };
    case "api-size":
    case "api-patch":
    case "api-repull":
    case "chat-size":
      return { kind, model, ctx };
    case "api-eject":
    case "api-unload":
      return { kind, model };
    case "api-roster":
      return { kind, wish: pick(random, ["add", "rpc", "single", "remove"] as const) };
    case "pull-left":
      return { kind, share: 0.1 + 0.7 * random() };
    default:
      return kind satisfies never;
  }
}

const damagedFiles: readonly DamagedFile[] = [
  "desired.json",
  "router.preset.ini",
  "last-applied.json",
  "inventory.json",
];
const damagedTexts = ["", "{", '{"generation": 7, "tree": {"ver', "[]", "\u0000\u0000\u0000\u0000"];

function faultOf(kind: Fault["kind"], random: Random): Fault {
  const model = pick(random, residents);
  switch (kind) {
    case "kill-model":
      return { kind, model };
    case "stop-model":
      return { kind, model, ms: between(random, 300, 1500) };
    case "kill-router":
    case "kill-gateway":
    case "term-gateway":
      return { kind };
    case "stop-router":
      return { kind, ms: between(random, 300, 1500) };
    case "cache-away":
      return { kind, ms: between(random, 300, 1000) };
    case "damage":
      return { kind, file: pick(random, damagedFiles), text: pick(random, damagedTexts) };
    default:
      return kind satisfies never;
  }
}

/** For a person. */
export function stepText({ number, change, faults, afterMs, rest }: Step): string {
  const changed = change ? [partText(change)] : [];
  const told = [...changed, ...faults.map(partText)].join(change ? `, after ${afterMs} ms ` : " and ");
  return `${number}. ${told}${rest ? ", rest" : ""}`;
}

function partText({ kind, ...values }: Change | Fault): string {
  return [kind, ...Object.values(values).map((value) => JSON.stringify(value))].join(" ");
}
