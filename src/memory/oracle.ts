// What a model would take of memory, by the engine's own allocator: one run at a time.
import { stat } from "node:fs/promises";
import { GatewayError } from "../core/errors.ts";
import { createSerial } from "../core/serial.ts";
import { addEstimates, type ByDevice, bytesOf, type Estimate, fitsIn, withFile } from "./need.ts";
import type { Question } from "./question.ts";

const mebibyte = 1024 * 1024;
/** The engine leaves so much of each device free where it chooses the context or the layers itself. */
const fitTarget = 1024 * mebibyte;

/** Characters of what cannot be understood. */
const mostShown = 200;

/** Errors: `engine_failed` with the last lines of llama-fit-params, `cancelled`. */
export type Oracle = (question: Question) => Promise<Estimate>;

export interface OracleOptions {
  /** Runs llama-fit-params; what it prints. Errors: `engine_failed`, `cancelled`. */
  readonly run: (args: readonly string[]) => Promise<string>;
  /** All that each of these devices has. */
  readonly totals: (devices: readonly string[]) => Promise<ByDevice>;
}

export function createOracle({ run, totals }: OracleOptions): Oracle {
  const serial = createSerial();

  async function estimateOf(args: readonly string[], isFitted: boolean): Promise<Estimate> {
    const plain = await printed(args);
    // Of main memory it fits nothing but a context that is not set.
    if (!isFitted || (plain.size === 1 && args.includes("--ctx-size"))) return plain;
    const most = await totals([...plain.keys()]);
    const isEnough = fitsIn(bytesOf(plain), new Map([...most].map(([device, bytes]) => [device, bytes - fitTarget])));
    if (isEnough) return plain;
    // It ends with 1 where nothing that it may change makes the model fit.
    const fitted = await run(args).catch(() => null);
    return fitted === null ? plain : printed([...args, ...fittedArguments(fitted)]);
  }

  async function printed(args: readonly string[]): Promise<Estimate> {
    // Its rows lack weights that are rearranged (Q4_0, Q4_K on CPU): 210 of 468 MiB. As they lie in the file they are as large.
    const output = await run([...args, "--no-repack", "--fit-print", "on"]);
    const estimate = parseRows(output);
    if (estimate.size === 0)
      throw new GatewayError(
        "engine_failed",
        `llama-fit-params printed no sizes: ${output.trim().slice(0, mostShown)}`,
      );
    return estimate;
  }

  return (question) =>
    serial(async () => {
      const estimates: Estimate[] = [];
      for (const args of question.runs) estimates.push(await estimateOf(args, question.isFitted));
      let sum = addEstimates(estimates);
      for (const file of question.files) sum = withFile(sum, (await stat(file)).size);
      return sum;
    });
}

/** Rows such as `CUDA0 4000 512 300` in MiB: the device, weights, KV cache, buffers. */
export function parseRows(output: string): Estimate {
  const rows = output.matchAll(/^(\S+) (\d+) (\d+) (\d+) *$/gm);
  return new Map(
    [...rows].map(([, device = "", ...sizes]) => {
      const [model = 0, context = 0, compute = 0] = sizes.map((size) => Number(size) * mebibyte);
      return [device, { model, context, compute }];
    }),
  );
}

/** What it prints of its choice: `-c 8192 -ngl 20 -ts 3,2 -ot "blk\.3\.ffn=CPU"`. */
export function fittedArguments(output: string): string[] {
  const line = output.split("\n").find((each) => each.startsWith("-c ")) ?? "";
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}
