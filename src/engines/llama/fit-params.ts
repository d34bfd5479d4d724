// Runs llama-fit-params, which asks the engine's own allocator without allocating what a model would take.
import { stat } from "node:fs/promises";
import { toolBeside } from "../install/locate.ts";
import { runEngineTool, type ToolPlace } from "./tool.ts";

export interface FitTool {
  /** Absolute. */
  readonly path: string;
  /** Tells its build from the next. */
  readonly build: string;
}

/** It reads the head of a file: 35 ms, more on a disk that sleeps. A first request waits for up to two that hang. */
const timeoutMs = 10_000;

/** The one beside this llama-server; null where there is none. */
export async function findFitTool(server: string): Promise<FitTool | null> {
  const path = await toolBeside(server, "llama-fit-params");
  const entry = path === null ? null : await stat(path).catch(() => null);
  return path === null || entry === null ? null : { path, build: `${entry.mtimeMs}:${entry.size}` };
}

/** What it prints. Errors: `engine_refused` for settings that the model cannot take, `engine_failed`, `cancelled`. */
export function runFitTool(
  { path }: FitTool,
  args: readonly string[],
  place: Omit<ToolPlace, "timeoutMs">,
): Promise<string> {
  return runEngineTool(path, args, { ...place, timeoutMs });
}
