// What a pull at full speed costs the chats beside it: their slowest hundredth, with a pull of 4 GB under way and a pass of the
// reconciler each second, beside a gateway that has nothing else to do, before and after. The hub has the lowest priority: it is another machine
// in real life, and here it takes a core's whole time. TMPDIR in memory (/dev/shm) leaves out the disk, which slows the pull.
// Argument: megabytes (4096).
import { cleanUp, withCleanUp } from "../support/clean-up.ts";
import { judge, quantile } from "./goals.ts";
import { startHub } from "./hub-process.ts";
import { type Answers, ask } from "./wire/load.ts";
import { startTargets, type Target } from "./wire/targets.ts";

const [megabytes = "4096"] = process.argv.slice(3);
const model = "acme/big-GGUF:Q8_0";
const p99 = ({ totals }: Answers): number => quantile(totals, 0.99);

async function running({ port, headers }: Target): Promise<boolean> {
  const status = (await (await fetch(`http://127.0.0.1:${port}/status`, { headers })).json()) as {
    running: readonly { kind: string; progress: { completed: number } | null }[];
  };
  return status.running.some(({ kind, progress }) => kind === "model.pull" && (progress?.completed ?? 0) > 0);
}

async function call({ port, headers }: Target, models: object): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/desired`, {
    method: "PATCH",
    headers: { ...headers, "content-type": "application/merge-patch+json" },
    body: JSON.stringify({ models }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}

await withCleanUp(async (t) => {
  const { hub, stop } = await startHub(Number(megabytes) * 1024 * 1024, 0, 19);
  cleanUp(t, stop);
  const env = { HF_ENDPOINT: hub.endpoint, GATEWAY_RESYNC: "1" };
  const targets = await startTargets(t, { env });
  const gateway = targets.find(({ name }) => name === "gateway");
  if (!gateway) throw new Error("no gateway");
  const batch = (): Promise<Answers> => ask(gateway, { stream: false }, 500, 1);
  for (let round = 0; round < 10; round++) await batch();
  const idle: number[] = [];
  // About as many as while pulling: of nine the median was 0.35 in one run and 0.53 in the next.
  const rest = async (): Promise<void> => {
    for (let round = 0; round < 150; round++) idle.push(p99(await batch()));
  };
  await rest();
  await call(gateway, { [model]: {} });
  while (!(await running(gateway))) await new Promise((resolve) => setTimeout(resolve, 10));
  const busy: number[] = [];
  for (;;) {
    const value = p99(await batch());
    if (!(await running(gateway))) break;
    busy.push(value);
  }
  await rest();
  const middle = (values: readonly number[]): number => quantile(values, 0.5);
  const verdict = judge(
    "busy",
    "p99 of a chat, pulling / idle",
    middle(busy) / middle(idle),
    { most: 1.5 },
    { idle, busy },
  );
  const show = (values: readonly number[]): string =>
    `${middle(values).toFixed(2)} (${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)}, ${values.length} times)`;
  console.log(`p99 of 500 chats, ms: idle ${show(idle)}; while pulling ${show(busy)}; ${verdict}`);
});
