// Runs the gateway in the foreground and tells a newcomer what to do next.
import pino from "pino";
import { type Gateway, startGateway } from "../gateway.ts";
import { stopOnSignals } from "../lifecycle.ts";
import type { Settings } from "../settings.ts";
import { forgetSecrets } from "./forget-secrets.ts";
import { logOutput } from "./log-output.ts";
import { installProgress } from "./progress.ts";

/** Where a license key could get into a log line. The raw packet is that of a request which the HTTP parser refused. */
const secretFields = [
  "req.headers.authorization",
  'req.headers["x-license-key"]',
  'req.headers["x-api-key"]',
  "err.rawPacket",
] as const;

export async function serveCommand(settings: Settings): Promise<void> {
  const logger = pino({ level: settings.logLevel, redact: [...secretFields] }, logOutput(process.stderr));
  const left = forgetSecrets();
  if (left.length > 0)
    logger.warn({ variables: left }, "other processes of this user can read secrets in the environment: use files");
  // A terminal that was closed takes no more words: that is no reason to end in disorder.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const giveUp = new AbortController();
  const starting = startGateway({
    settings,
    logger,
    onInstallProgress: installProgress("llama-server", process.stderr),
    signal: giveUp.signal,
  });
  stopOnSignals(
    async () => {
      console.log("Stopping: answers in flight may end first. A second signal stops at once.");
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
  if (gateway === null) return;
  console.log(`Model Gateway listens on ${gateway.url}; its document is ${settings.configPath}`);
  tellWhenReady(gateway);
}

interface ToldCondition {
  readonly subject?: string;
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** States of a start that pass by themselves. */
const passing = new Set(["NotStarted", "Starting", "EngineInstalling"]);

/** Says once that it works, with a line to try; until then, why it does not. */
function tellWhenReady(gateway: Gateway): void {
  const stopFollowing = gateway.journal.follow(({ type, data }) => {
    const condition = data as ToldCondition;
    if (type !== "condition" || condition.subject !== "gateway") return;
    if (condition.type === "RouterReady" && condition.status === "False" && !passing.has(condition.reason ?? "")) {
      console.log(`Not ready: ${condition.message ?? ""}`);
    }
    if (condition.type !== "Synced" || condition.status !== "True") return;
    stopFollowing();
    const name = gateway.status().models[0]?.id;
    console.log(
      name === undefined
        ? "\nReady. No model yet: add one to the document."
        : `\nReady. Try it:\n\n  ${tryLine(gateway, name)}\n`,
    );
  });
}

function tryLine({ url, needsKey }: Gateway, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Who are you?" }] });
  const key = needsKey() ? " -H 'Authorization: Bearer LICENSE_KEY'" : "";
  return `curl -N ${url}/v1/chat/completions${key} -H 'Content-Type: application/json' -d '${body}'`;
}
