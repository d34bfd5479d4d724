// Runs the gateway in the foreground and prints what to do next: as text on a terminal, elsewhere as JSON lines.
import type { WriteStream } from "node:tty";
import pino from "pino";
import { type Gateway, startGateway } from "../app/gateway.ts";
import type { CommandLine } from "../settings/settings.ts";
import type { Condition } from "../status/finding.ts";
import { forgetSecrets } from "./forget-secrets.ts";
import { jsonLines, logOutput } from "./log-output.ts";
import { installProgress } from "./progress.ts";
import { stopOnSignals } from "./signals.ts";

/** Where a license key could get into a log line. The raw packet is that of a request which the HTTP parser refused. */
const secretFields = [
  "req.headers.authorization",
  'req.headers["x-license-key"]',
  'req.headers["x-api-key"]',
  "err.rawPacket",
] as const;

/** Resolves with null when the gateway listens. */
export async function serveCommand({ settings }: CommandLine): Promise<null> {
  const logger = pino({ level: settings.logLevel, redact: [...secretFields] }, logOutput(process.stderr));
  const left = forgetSecrets();
  if (left.length > 0)
    logger.warn({ variables: left }, "other processes of this user can read secrets in the environment: use files");
  // Output to a closed terminal fails: the shutdown goes on in order.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  // Node prints its own as text.
  process.removeAllListeners("warning").on("warning", (warning) => logger.warn({ err: warning }, "warning of Node"));
  const announce = createAnnounce(process.stdout);
  const giveUp = new AbortController();
  const starting = startGateway({
    settings,
    logger,
    onInstallProgress: installProgress("llama-server", process.stderr, (step) =>
      logger.info(step, "installing llama-server"),
    ),
    signal: giveUp.signal,
  });
  stopOnSignals(
    async () => {
      announce("Stopping: responses in flight may end first. A second signal stops at once.");
      giveUp.abort();
      const started = await starting.catch(() => null);
      await started?.stop();
    },
    (error) => logger.error({ err: error }, "the gateway did not stop cleanly"),
  );
  const gateway = await starting.catch((error: unknown) => {
    if (giveUp.signal.aborted) return null;
    throw error;
  });
  if (gateway === null) return null;
  const { url } = gateway;
  const document = settings.configPath;
  announce(`Model Gateway listens on ${url}; its document is ${document}`, { url, document });
  announceReady(gateway, announce);
  return null;
}

/** `terminal`: the text on a terminal, if it differs from the message. */
type Announce = (message: string, fields?: object, terminal?: string) => void;

function createAnnounce(stream: WriteStream): Announce {
  if (stream.isTTY) return (message, _fields, terminal = message) => console.log(terminal);
  const lines = jsonLines(stream);
  return (message, fields = {}) => lines.info(fields, message);
}

/** States of a start that pass by themselves. */
const passing = new Set(["NotStarted", "Starting", "EngineInstalling"]);

/** Announces once that it is ready, with a command to try; until then, why it is not. */
function announceReady(gateway: Gateway, announce: Announce): void {
  const stopFollowing = gateway.journal.follow(({ type, data }) => {
    const condition = data as Condition & { readonly subject: string };
    if (type !== "condition" || condition.subject !== "gateway") return;
    if (condition.type === "RouterReady" && condition.status === "False" && !passing.has(condition.reason)) {
      announce(`Not ready: ${condition.message}`, { reason: condition.reason });
    }
    if (condition.type !== "Synced" || condition.status !== "True") return;
    stopFollowing();
    const name = gateway.status().models[0]?.id;
    if (name === undefined) {
      const message = "Ready. No model yet: add one to the document.";
      return announce(message, {}, `\n${message}`);
    }
    const command = tryLine(gateway, name);
    announce("Ready. Try it.", { try: command }, `\nReady. Try it:\n\n  ${command}\n`);
  });
}

function tryLine({ url, needsKey }: Gateway, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Who are you?" }] });
  const key = needsKey() ? " -H 'Authorization: Bearer LICENSE_KEY'" : "";
  return `curl -N ${url}/v1/chat/completions${key} -H 'Content-Type: application/json' -d '${body}'`;
}
