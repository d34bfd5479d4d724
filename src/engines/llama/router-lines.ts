// Which model a line of the router's output is of. The router prints its instances' lines with their ports in front, and of each start
// which model has which port. Pure.
import { redactText } from "../../core/redact.ts";
import type { LineOwner } from "../process/engine-logs.ts";

/** `0.00.267.126 I srv          load: spawning server instance with name=acme/alpha:Q8_0 on port 46455` */
const spawning = /spawning server instance with name=(.+) on port (\d+)$/;

export function createRouterLines(): LineOwner {
  const models = new Map<string, string>();
  return (line) => {
    const end = line.startsWith("[") ? line.indexOf("] ") : -1;
    const model = end < 0 ? undefined : models.get(line.slice(1, end));
    if (model !== undefined) return { log: model, line: line.slice(end + 2) };
    const [, name, port] = spawning.exec(line) ?? [];
    if (name !== undefined && port !== undefined) models.set(port, name);
    // It prints the options of each instance that it starts.
    return { log: "router", line: redactText(line) };
  };
}
