// The time that finding a 20 MB body's model takes, beside the parse that the scan saves.
import { scanBody } from "../../src/http/body-scan.ts";

const url = `data:image/png;base64,${"iVBORw0K".repeat(2.5e6)}`;
const content = [{ type: "image_url", image_url: { url } }];
const body = Buffer.from(JSON.stringify({ messages: [{ role: "user", content }], model: "m" }));

for (const [name, work] of [
  ["scanBody", () => scanBody(body, ["model", "stream"])],
  ["JSON.parse", () => JSON.parse(body.toString()) as unknown],
] as const) {
  const times = Array.from({ length: 9 }, () => {
    const began = performance.now();
    work();
    return performance.now() - began;
  }).toSorted((a, b) => a - b);
  console.log(`${name}: ${times[4]?.toFixed(1)} ms (${times[0]?.toFixed(1)}–${times[8]?.toFixed(1)}, 9 times)`);
}
