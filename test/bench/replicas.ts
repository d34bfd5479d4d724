// Three gateways with one document behind HAProxy, as docs/deploy/haproxy.cfg has it: what their clients lose when one is killed, when
// all are restarted one after the other, and when the document changes. Arguments: streams (200), tokens of each (600).
import { setTimeout as delay } from "node:timers/promises";
import type { Ending } from "../support/clean-up.ts";
import { runCommand } from "../support/command.ts";
import { chat, type Reply, startClients } from "../support/replica-clients.ts";
import { balance, documentHashes, type Replica, seesAll, startReplica } from "../support/replicas.ts";
import { until } from "../support/scratch.ts";

const [streams = 200, tokens = 600] = process.argv.slice(3).map(Number);
const repo = "acme/alpha";
const model = `${repo}:Q8_0`;
/** Enough for all streams on two of three gateways. */
const parallel = Math.ceil(streams / 2) + 8;
const waitMs = 120_000;

const documentOf = (aliases: readonly string[]): string =>
  JSON.stringify({
    version: 1,
    models: [
      { id: model, aliases, ctxSize: (tokens + 400) * parallel, preset: { parallel, threads: 1 }, pinned: true },
    ],
  });

function tally(replies: readonly Reply[]): string {
  const count = (test: (reply: Reply) => boolean): number => replies.filter(test).length;
  const ended = (outcome: Reply["outcome"]): number => count((reply) => reply.outcome === outcome);
  const reasons = new Set(replies.flatMap(({ outcome, why }) => (outcome === "refused" ? [why] : [])));
  return `${replies.length} begun, ${ended("whole")} whole, ${ended("told")} with an error frame, ${ended("broken")} broken, ${ended("refused")} refused ${[...reasons].join("; ")}`.trimEnd();
}

/** Requests per second, 16 at a time. */
async function rate(url: string): Promise<string> {
  const clients = startClients(url, { model, max_tokens: 16 }, 16);
  const began = performance.now();
  await delay(5_000);
  const replies = await clients.stop();
  return `${((replies.length / (performance.now() - began)) * 1000).toFixed(0)}/s`;
}

async function killOne(url: string, replicas: readonly Replica[]): Promise<void> {
  const body = { model, max_tokens: tokens, stream: true, messages: [{ role: "user", content: "forever" }] };
  let begun = 0;
  const all = Array.from({ length: streams }, () => chat(url, body, () => begun++));
  await until("all streams are under way", async () => begun === streams, waitMs);
  const clients = startClients(url, { model, max_tokens: 8 }, 4);
  const [victim] = replicas;
  if (!victim) return;
  victim.serve.process.kill("SIGKILL");
  const replies = await Promise.all(all);
  const news = await clients.stop();
  const others = replies.filter(({ gateway }) => gateway !== victim.name);
  console.log(`kill -9 of ${victim.name} with ${streams} streams under way`);
  console.log(`  its streams:        ${tally(replies.filter(({ gateway }) => gateway === victim.name))}`);
  console.log(`  the others' streams: ${tally(others)}`);
  console.log(`  new requests:        ${tally(news)}\n`);
  await victim.restart();
  await seesAll(url, replicas);
}

async function rollOver(url: string, replicas: readonly Replica[]): Promise<void> {
  const short = startClients(url, { model, max_tokens: 8 }, 6);
  const long = startClients(
    url,
    { model, max_tokens: 100, stream: true, messages: [{ role: "user", content: "forever" }] },
    12,
  );
  const began = performance.now();
  for (const replica of replicas) {
    replica.serve.process.kill("SIGTERM");
    const { code } = await replica.serve.exited;
    if (code !== 0) console.log(`  ${replica.name} ended with ${code}`);
    await replica.restart();
    await seesAll(url, replicas);
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(`rolling restart of all three under load, ${seconds} s`);
  console.log(`  short requests: ${tally(await short.stop())}`);
  console.log(`  streams:        ${tally(await long.stop())}\n`);
}

async function changeDocument(t: Ending, replicas: readonly Replica[]): Promise<void> {
  const [before] = await documentHashes(replicas);
  const began = performance.now();
  await Promise.all(replicas.map(({ folders }) => folders.writeConfig(documentOf(["chat"]))));
  await until("one new hash", async () => {
    const now = await documentHashes(replicas);
    return now.size === 1 && !now.has(before ?? null);
  });
  console.log(`the document changes on all three: one hash after ${(performance.now() - began).toFixed(0)} ms`);
  await compare(t, replicas);
  await replicas[2]?.folders.writeConfig(documentOf(["other"]));
  await until("it differs", async () => (await documentHashes(replicas)).size === 2);
  await compare(t, replicas);
}

async function compare(t: Ending, [first, ...others]: readonly Replica[]): Promise<void> {
  if (!first) return;
  const list = [first, ...others].map(({ url }) => url).join();
  const { code, stdout, stderr } = await runCommand(t, first.folders, ["status", "--all", list]);
  console.log(`$ model-gateway status --all …  (exit code ${code})\n${stdout}${stderr}`);
}

async function run(): Promise<void> {
  const endings: (() => Promise<void>)[] = [];
  const t: Ending = { after: (fn) => void endings.push(fn) };
  try {
    const replicas: Replica[] = [];
    const options = { document: documentOf([]), models: [repo], flags: ["--queue-limit", "1000"] };
    for (let at = 0; at < 3; at++) replicas.push(await startReplica(t, at, options));
    const url = await balance(t, replicas);
    await seesAll(url, replicas);
    const one = replicas[0]?.url ?? "";
    console.log(`requests of 16 tokens: one gateway ${await rate(one)}, three behind HAProxy ${await rate(url)}\n`);
    await killOne(url, replicas);
    await rollOver(url, replicas);
    await changeDocument(t, replicas);
  } finally {
    for (const end of endings.toReversed()) await end();
  }
}

await run();
