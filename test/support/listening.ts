// The moment at which a gateway begins to listen, which is before it has looked at anything.
import pino from "pino";
import type { TestGatewayOptions } from "./gateway.ts";

/** Options of a gateway's start; `then` gets its address. */
export function onListening(then: (url: string) => void): Pick<TestGatewayOptions, "flags" | "logger"> {
  const write = (line: string): void => {
    const { msg, url } = JSON.parse(line) as { msg: string; url?: string };
    if (msg === "the port is open" && url !== undefined) then(url);
  };
  return { flags: ["--log-level", "info"], logger: pino({ level: "info" }, { write }) };
}
