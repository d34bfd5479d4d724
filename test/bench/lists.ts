// How long the gateway takes for what it says of all models, with 1,000 in its cache and 200 in its document. Most of it is one piece,
// in which no stream goes on.

import { withCleanUp } from "../support/clean-up.ts";
import { judge, quantile } from "./goals.ts";
import { startTargets } from "./wire/targets.ts";

const repetitions = 25;
const addresses = ["/beta/v1/models", "/alpha/api/tags", "/alpha/api/ps", "/status", "/metrics"];

await withCleanUp(async (t) => {
  const targets = await startTargets(t, { pairs: 1 });
  const full = targets.find(({ name }) => name === "full");
  if (!full) throw new Error("no gateway with 1,000 models was started");
  console.log("| | first | median (range) | kB | goal |\n|---|---:|---:|---:|---|");
  for (const address of addresses) {
    const times: number[] = [];
    let bytes = 0;
    for (let n = 0; n <= repetitions; n++) {
      const began = performance.now();
      const response = await fetch(`http://127.0.0.1:${full.port}${address}`, { headers: full.headers });
      bytes = (await response.arrayBuffer()).byteLength;
      if (response.status !== 200) throw new Error(`${address}: ${response.status}`);
      times.push(performance.now() - began);
    }
    const [first = Number.NaN, ...later] = times;
    const middle = quantile(later, 0.5);
    const range = `${middle.toFixed(0)} ms (${Math.min(...later).toFixed(0)}–${Math.max(...later).toFixed(0)})`;
    const verdict = judge(address, "ms of 1,000 models", middle, { most: 100 }, { later });
    console.log(`| ${address} | ${first.toFixed(0)} ms | ${range} | ${(bytes / 1e3).toFixed(0)} | ${verdict} |`);
  }
});
