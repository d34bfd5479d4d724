// A process that tries to take a state folder's lock once, says how that went, and keeps what it got until it is ended.
import { writeSync } from "node:fs";
import { lockState } from "../../src/state/lock.ts";

const [folder = "", startAt = "0"] = process.argv.slice(2);
// All contenders wait for the same moment, so that they really race.
while (Date.now() < Number(startAt)) continue;
try {
  await lockState(folder);
  writeSync(1, "won\n");
} catch (error) {
  writeSync(1, `lost: ${error instanceof Error ? error.message : String(error)}\n`);
}
setInterval(() => undefined, 60_000);
