// A bounded number of clients that chat all the time, and the verdict on each answer: whole, or an error that something
// which was going on at the time allows.
import { errorCatalog } from "../../../src/core/error-catalog.ts";
import { until } from "../scratch.ts";
import { pick, type Random, randomFrom } from "../seeded.ts";
import { type Answer, ask, type Outcome, type Target } from "./ask.ts";
import type { Dialect } from "./dialects.ts";
import { chaosAnswer, idOf } from "./models.ts";

/** What a disturbance may do to answers. Nothing else may happen to them, and what is not named never may. */
export interface Allowance {
  readonly why: string;
  /** Of the error catalog. */
  readonly codes: readonly string[];
  readonly outcomes?: readonly ("lost" | "refused")[];
  /** Default: any. */
  readonly model?: string;
  /** Only to those in flight when it begins, or only to those that begin later; default: to both. */
  readonly only?: "in flight" | "later";
}

interface Stream {
  readonly dialect: Dialect;
  readonly model: string;
  readonly begunIn: string;
  readonly allowances: Allowance[];
  isMid: boolean;
}

const statuses = new Map<string, number>(Object.entries(errorCatalog).map(([code, { status }]) => [code, status]));

export interface StreamCounts {
  begun: number;
  readonly outcomes: Record<Outcome, number>;
  readonly codes: Record<string, number>;
  longestWaitMs: number;
}

export interface Streams {
  readonly counts: StreamCounts;
  /** What was not allowed, in words; forgotten once taken. */
  takeViolations(): string[];
  /** Allows something from now until the result is called. */
  allow(allowance: Allowance): () => void;
  /** Resolves when so many answers (of that model, where one is named) are being told. */
  midAnswer(count: number, model?: string): Promise<void>;
  /** So many more answers have ended whole. */
  moreWhole(count: number): Promise<void>;
  /** Every model has answered whole once more. */
  allWhole(): Promise<void>;
  /** No new chats; resolves when none is in flight. */
  pause(): Promise<void>;
  resume(): void;
  /** As {@link pause}, for good. */
  stop(): Promise<void>;
  /** What is in flight, for a person. */
  inFlight(): string[];
}

export interface StreamsOptions {
  readonly seed: number;
  readonly clients: readonly Dialect[];
  readonly models: readonly string[];
  /** Where to ask; waits while there is nobody to be asked. */
  readonly target: () => Promise<Target>;
  /** Nobody listened there, or it was said to be ending: resolves when it makes sense to ask again. */
  readonly afterRefusal: (target: Target) => Promise<void>;
  /** An answer that takes longer hangs, ms. */
  readonly limitMs: number;
  readonly onAnswer?: (answer: Answer) => void;
  /** What is going on, for reports. */
  readonly moment: () => string;
}

export function startStreams(options: StreamsOptions): Streams {
  const flying = new Set<Stream>();
  const standing = new Set<Allowance>();
  const violations: string[] = [];
  const wholeOf = new Map<string, number>();
  const counts: StreamCounts = {
    begun: 0,
    outcomes: { whole: 0, error: 0, lost: 0, refused: 0, cut: 0, foreign: 0, hung: 0 },
    codes: {},
    longestWaitMs: 0,
  };
  let gate: { readonly open: Promise<void>; lift(): void } | null = null;
  let stopped = false;
  let tellStop: () => void = () => undefined;
  const stopping = new Promise<undefined>((resolve) => {
    tellStop = () => resolve(undefined);
  });

  async function client(dialect: Dialect, random: Random): Promise<void> {
    for (;;) {
      while (gate) await gate.open;
      if (stopped) return;
      const target = await Promise.race([options.target(), stopping]);
      if (gate !== null || stopped || target === undefined) continue;
      const model = pick(random, options.models);
      const allowances = [...standing].filter((allowance) => concerns(allowance, model));
      const stream: Stream = { dialect, model, begunIn: options.moment(), allowances, isMid: false };
      flying.add(stream);
      counts.begun++;
      const answer = await ask(target, {
        dialect,
        model: idOf(model),
        expected: chaosAnswer(model),
        limitMs: options.limitMs,
        onText: () => {
          stream.isMid = true;
        },
      });
      flying.delete(stream);
      note(stream, answer);
      if (answer.outcome === "refused" || answer.status === 503)
        await Promise.race([options.afterRefusal(target), stopping]);
    }
  }

  function note(stream: Stream, answer: Answer): void {
    counts.outcomes[answer.outcome]++;
    if (answer.outcome === "whole") wholeOf.set(stream.model, (wholeOf.get(stream.model) ?? 0) + 1);
    counts.longestWaitMs = Math.max(counts.longestWaitMs, answer.firstTextMs ?? 0);
    if (answer.outcome === "error") {
      const code = answer.error?.code ?? `${stream.dialect} ${answer.status ?? 0}`;
      counts.codes[code] = (counts.codes[code] ?? 0) + 1;
    }
    options.onAnswer?.(answer);
    const problem = problemOf(stream, answer);
    if (problem === null) return;
    const { dialect, model, begunIn, allowances } = stream;
    const allowed = allowances.map(({ why }) => why).join(", ") || "nothing";
    violations.push(
      `${dialect} of ${model}, begun in ${begunIn}, ended in ${options.moment()}: ${answer.outcome}: ${problem} (allowed: ${allowed}): ${answer.detail}${answer.error ? ` ${JSON.stringify(answer.error)}` : ""}`,
    );
  }

  const clients = options.clients.map((dialect, index) => client(dialect, randomFrom(options.seed + 1000 * index)));

  function lift(): void {
    gate?.lift();
    gate = null;
  }

  async function pause(): Promise<void> {
    if (gate === null) {
      let lifted: () => void = () => undefined;
      const open = new Promise<void>((resolve) => {
        lifted = resolve;
      });
      gate = { open, lift: lifted };
    }
    await until("the answers in flight have ended", () => flying.size === 0, options.limitMs + 5_000);
  }

  return {
    counts,
    takeViolations: () => violations.splice(0),
    allow: (allowance) => {
      if (allowance.only !== "later") {
        for (const stream of flying) if (concerns(allowance, stream.model)) stream.allowances.push(allowance);
      }
      if (allowance.only !== "in flight") standing.add(allowance);
      return () => void standing.delete(allowance);
    },
    midAnswer: async (count, model) => {
      const isMeant = (stream: Stream): boolean => stream.isMid && (model === undefined || stream.model === model);
      await until(`${count} answers are being told`, () => [...flying].filter(isMeant).length >= count);
    },
    moreWhole: async (count) => {
      const before = counts.outcomes.whole;
      await until(`${count} more answers ended whole`, () => counts.outcomes.whole >= before + count);
    },
    allWhole: async () => {
      const before = new Map(wholeOf);
      const hasAnswered = (model: string): boolean => (wholeOf.get(model) ?? 0) > (before.get(model) ?? 0);
      await until("every model has answered whole", () => options.models.every(hasAnswered));
    },
    pause,
    resume: lift,
    stop: async () => {
      stopped = true;
      tellStop();
      lift();
      await Promise.all(clients);
    },
    inFlight: () => [...flying].map(({ dialect, model, begunIn }) => `${dialect} of ${model} since ${begunIn}`),
  };
}

function concerns({ model }: Allowance, asked: string): boolean {
  return model === undefined || model === asked;
}

function problemOf({ dialect, allowances }: Stream, { outcome, status, error }: Answer): string | null {
  switch (outcome) {
    case "whole":
      return null;
    case "lost":
    case "refused":
      return allowances.some(({ outcomes }) => outcomes?.includes(outcome)) ? null : "not allowed";
    case "error": {
      if (error === null) return "no error of its family";
      if (error.message === "") return "it says nothing";
      const allowed = allowances.flatMap(({ codes }) => codes);
      // That family has no codes: the status stands for them, and in a stream there is but the text.
      if (dialect === "native") {
        const fits = allowed.some((code) => status === 200 || statuses.get(code) === status);
        return fits ? null : "not allowed";
      }
      if (error.code === null || !statuses.has(error.code)) return "its code is not documented";
      return allowed.includes(error.code) ? null : "not allowed";
    }
    default:
      return "never allowed";
  }
}
