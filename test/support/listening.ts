// The moment at which a gateway begins to listen, which is before it has looked at anything.
import pino from "pino";
import type { TestGatewayOptions } from "./gateway.ts";

/** Options of a gateway's start; `then` gets its address. */
export function onListening(then: (url: string) => void): Pick<TestGatewayOptions, "flags" | "logger"> {
  const write = (line: string): void => {
    const url = /"Server listening at (http[^"]+)"/.exec(line)?.[1];
    if (url !== undefined) then(url);
  };
  return { flags: ["--log-level", "info"], logger: pino({ level: "info" }, { write }) };
}
