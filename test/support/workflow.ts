// The workflow of docs/gitops, its jobs run as a runner does: each step by bash in a checkout, with the environment that it declares.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { readProjectFile } from "./project-files.ts";

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly if?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Job {
  readonly if: string;
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

export const workflow = parse(readProjectFile("docs/gitops/workflow.yml")) as Workflow;

interface Runner {
  /** Its checkout. */
  readonly folder: string;
  /** Values of what stands in `${{ }}`, by its text. */
  readonly context: Readonly<Record<string, string>>;
  /** What a runner has beside what the workflow declares. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface StepResult {
  readonly name: string;
  /** null: skipped. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The steps of the job for an event. */
export async function runJob(event: string, runner: Runner): Promise<StepResult[]> {
  const jobs = Object.values(workflow.jobs).filter((job) => job.if === `github.event_name == '${event}'`);
  assert.equal(jobs.length, 1, event);
  const results: StepResult[] = [];
  for (const { name = "", uses, run, env = {}, if: condition } of jobs[0]?.steps ?? []) {
    if (uses !== undefined) {
      assert.match(uses, /^actions\/checkout@/);
      continue;
    }
    // A value in a script would be run as a part of it.
    assert.ok(run !== undefined && !run.includes("${{"), name);
    const hasFailed = results.some(({ code }) => code !== null && code !== 0);
    if (isWanted(condition, hasFailed, runner.folder)) results.push({ name, ...(await runStep(run, env, runner)) });
    else results.push({ name, code: null, stdout: "", stderr: "" });
  }
  return results;
}

/** The conditions that the workflow has. */
function isWanted(condition: string | undefined, hasFailed: boolean, folder: string): boolean {
  if (condition === undefined) return !hasFailed;
  const match = /^\$\{\{ !cancelled\(\)(?: && hashFiles\('([\w.]+)'\) != '')? \}\}$/.exec(condition);
  assert.ok(match, condition);
  const [, file] = match;
  return file === undefined || existsSync(join(folder, file));
}

function runStep(
  script: string,
  env: Step["env"],
  { folder, context, environment }: Runner,
): Promise<Omit<StepResult, "name">> {
  const filled = Object.entries({ ...workflow.env, ...env }).map(([name, value]) => {
    const text = value.replace(/\$\{\{ (.+?) \}\}/g, (_, key: string) => {
      const found = context[key];
      assert.ok(found !== undefined, key);
      return found;
    });
    return [name, text] as const;
  });
  const options = { cwd: folder, env: { ...environment, ...Object.fromEntries(filled) } };
  return new Promise((resolve) => {
    const shell = ["--noprofile", "--norc", "-eo", "pipefail", "-c", script];
    const child = execFile("bash", shell, options, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}
