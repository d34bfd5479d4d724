// Estimates by question: what is kept in memory.json, what is being asked, and what cannot be known.
import { stat } from "node:fs/promises";
import { actionBackoff, backoffDelay } from "../core/backoff.ts";
import { GatewayError, isAbsent, toGatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import type { FitTool } from "../engines/llama/fit-params.ts";
import type { MemoryBook } from "./book.ts";
import { type ByDevice, type Estimate, type Need, needOf } from "./need.ts";
import { createOracle, type OracleOptions } from "./oracle.ts";
import { pathsIn, type Question } from "./question.ts";

export type Estimates = ReturnType<typeof createEstimates>;

interface Failure {
  readonly error: GatewayError;
  /** In a row. */
  readonly count: number;
  /** It may be asked again from then on (ms): never, if the engine has refused. */
  readonly dueAt: number;
}

export function createEstimates(options: {
  readonly book: MemoryBook;
  /** What llama-fit-params prints. Errors: `engine_failed`, `cancelled`. */
  readonly run: (tool: FitTool, args: readonly string[]) => Promise<string>;
  readonly totals: OracleOptions["totals"];
  /** ms */
  readonly now?: () => number;
}) {
  const { book, run, totals, now = steadyNow } = options;
  /** null: llama-server has none; undefined: there is no llama-server. */
  let tool: FitTool | null | undefined;
  /** By key: why it cannot be known. */
  const failures = new Map<string, Failure>();
  /** By key: questions that are being answered. */
  const flights = new Map<string, Promise<Estimate>>();
  const oracle = createOracle({
    run: async (args) => {
      if (!tool) throw new GatewayError("engine_failed", noTool);
      return run(tool, args);
    },
    totals,
  });

  const keyOf = (question: Question): string => `${tool?.build ?? ""} ${question.key}`;

  async function asked(key: string, question: Question): Promise<Estimate> {
    try {
      const found = await oracle(question);
      book.note(key, { estimate: found });
      return found;
    } catch (error) {
      await requireFiles(question);
      const failure = toGatewayError(error);
      const count = (failures.get(key)?.count ?? 0) + 1;
      const dueAt = failure.code === "engine_refused" ? Infinity : now() + backoffDelay(count, actionBackoff);
      if (failure.code !== "cancelled") failures.set(key, { error: failure, count, dueAt });
      throw error;
    } finally {
      flights.delete(key);
    }
  }

  return {
    keyOf,
    /** True: it is another than before. */
    use: (next: FitTool | null | undefined): boolean => {
      if (next?.build === tool?.build && (next === null) === (tool === null)) return false;
      tool = next;
      failures.clear();
      return true;
    },
    isReady: (): boolean => Boolean(tool),
    known: (question: Question): Need | null => {
      const { estimate, measured } = book.get(keyOf(question));
      return needOf(estimate, measured);
    },
    /** Without what was measured; null: not known. */
    estimated: (question: Question): Estimate | null => book.get(keyOf(question)).estimate,
    /** Why it cannot be known; null: it can. */
    why: (question: Question): string | null =>
      tool === null ? noTool : (failures.get(keyOf(question))?.error.message ?? null),
    /** A load with these settings would fail too. */
    isRefused: (question: Question): boolean => failures.get(keyOf(question))?.error.code === "engine_refused",
    /** It has failed a while ago, maybe for lack of processes or time: it is asked again. */
    isDue: (question: Question): boolean => now() >= (failures.get(keyOf(question))?.dueAt ?? Infinity),
    /** Answers from what is kept, else asks. Errors: `engine_refused`, `engine_failed`, `model_not_found`, `cancelled`. */
    ask: async (question: Question): Promise<Estimate> => {
      const key = keyOf(question);
      const [kept, failure] = [book.get(key).estimate, failures.get(key)];
      if (kept) return kept;
      if (failure?.error.code === "engine_refused") throw failure.error;
      const flight = flights.get(key) ?? asked(key, question);
      flights.set(key, flight);
      return flight;
    },
    noteMeasured: (question: Question, measured: ByDevice): void => book.note(keyOf(question), { measured }),
  };
}

export const noTool = "there is no llama-fit-params beside llama-server";

/** What is asked about a file that is not there must not be kept as a failure of the model. */
async function requireFiles(question: Question): Promise<void> {
  for (const path of pathsIn(question))
    await stat(path).catch((error: unknown) => {
      throw isAbsent(error) ? new GatewayError("model_not_found", "it is not in the model cache") : error;
    });
}
