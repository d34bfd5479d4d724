// What goes wrong with processes and files, and what each fault may do to the answers under way. Each undoes itself.
import assert from "node:assert/strict";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { until } from "../scratch.ts";
import type { ChaosDeps } from "./changes.ts";
import { idOf } from "./models.ts";
import type { DamagedFile, Fault } from "./plan.ts";
import type { Streams } from "./streams.ts";
import { signalTo, untilProcess, type World } from "./world.ts";

/** Resolves when the fault is over; the gateway is running then. */
export async function makeFault(deps: ChaosDeps, fault: Fault): Promise<void> {
  const { world, streams } = deps;
  switch (fault.kind) {
    case "kill-model":
      return killModel(world, streams, fault.model);
    case "stop-model":
      return hold(world, idOf(fault.model), fault.ms);
    case "kill-router":
      // Not a single answer may suffer: a model's process outlives its router while it answers.
      return void signalTo((await untilProcess(world, null)).pid, "SIGKILL");
    case "stop-router":
      return hold(world, null, fault.ms);
    case "kill-gateway":
      return killGateway(world, streams);
    case "term-gateway":
      return endGateway(world, streams);
    case "cache-away":
      return takeCacheAway(world, streams, fault.ms);
    case "damage":
      return damage(deps, fault.file, fault.text);
    default:
      return fault satisfies never;
  }
}

async function killModel(world: World, streams: Streams, name: string): Promise<void> {
  await streams.midAnswer(1, name);
  const { pid } = await untilProcess(world, idOf(name));
  streams.allow({
    why: `${name}'s process is killed`,
    codes: ["upstream_failed"],
    model: name,
    only: "in flight",
  });
  signalTo(pid, "SIGKILL");
}

/** The process does nothing for a while, and then goes on as if nothing had been. */
async function hold(world: World, model: string | null, ms: number): Promise<void> {
  const { pid } = await untilProcess(world, model);
  signalTo(pid, "SIGSTOP");
  try {
    await delay(ms);
  } finally {
    signalTo(pid, "SIGCONT");
  }
}

async function killGateway(world: World, streams: Streams): Promise<void> {
  streams.allow({ why: "the gateway is killed", codes: [], outcomes: ["lost", "refused"], only: "in flight" });
  await world.end("SIGKILL");
  await world.start();
}

/** Whoever is being answered is answered to the end; whoever still waits, or comes, is told. */
async function endGateway(world: World, streams: Streams): Promise<void> {
  const why = "the gateway is asked to end";
  streams.allow({ why, codes: ["shutting_down"], only: "in flight" });
  // When the listener closes, the kernel resets what it had not handed over yet.
  const over = streams.allow({ why, codes: ["shutting_down"], outcomes: ["refused", "lost"], only: "later" });
  const code = await world.end("SIGTERM");
  over();
  assert.equal(code, 0, "an orderly end");
  await world.start();
}

async function takeCacheAway(world: World, streams: Streams, ms: number): Promise<void> {
  const { cacheDir } = world.folders;
  // Loaded models need no file; what is to be loaded has none.
  const over = streams.allow({ why: "the cache is away", codes: ["model_load_failed", "model_not_found"] });
  // A load that began without it may end after it is back, and rests for a while before it is tried again.
  const rested = streams.allow({ why: "the cache was away", codes: ["model_load_failed", "load_failing"] });
  await rename(cacheDir, `${cacheDir}-away`);
  try {
    await delay(ms);
  } finally {
    await rename(`${cacheDir}-away`, cacheDir);
  }
  over();
  await streams.allWhole();
  rested();
}

async function damage({ world, book, streams }: ChaosDeps, file: DamagedFile, text: string): Promise<void> {
  const path = join(world.folders.stateDir, file);
  if (file === "router.preset.ini") {
    await writeFile(path, text);
    await until("the preset is mended", async () => (await readFile(path, "utf8")).includes("[*]"));
    return;
  }
  streams.allow({ why: "the gateway is killed", codes: [], outcomes: ["lost", "refused"], only: "in flight" });
  await world.end("SIGKILL");
  await writeFile(path, text);
  if (file === "desired.json") book.loseDocument();
  if (file === "last-applied.json") book.loseApplied();
  await world.start();
}
