// Runs the gateway in the foreground and tells a newcomer what to do next.
import pino from "pino";
import { type Gateway, startGateway } from "../gateway.ts";
import { stopOnSignals } from "../lifecycle.ts";
import type { Settings } from "../settings.ts";
import { logOutput } from "./log-output.ts";
import { installProgress } from "./progress.ts";

export async function serveCommand(settings: Settings): Promise<void> {
  const logger = pino({ level: settings.logLevel, redact: ["req.headers.authorization"] }, logOutput(process.stderr));
  const gateway = await startGateway({
    settings,
    logger,
    onInstallProgress: installProgress("llama-server", process.stderr),
  });
  stopOnSignals(
    () => {
      console.log("Stopping: answers in flight may end first. A second signal stops at once.");
      return gateway.stop();
    },
    (error) => logger.error({ err: error }, "the gateway did not stop cleanly"),
  );
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
        : `\nReady. Try it:\n\n  ${tryLine(gateway.url, name)}\n`,
    );
  });
}

function tryLine(url: string, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Who are you?" }] });
  return `curl -N ${url}/beta/v1/chat/completions -H 'Content-Type: application/json' -d '${body}'`;
}
