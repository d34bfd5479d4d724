// Runs the gateway in the foreground and tells a newcomer what to do next.
import pino from "pino";
import type { InstallProgress } from "../engines/install/install.ts";
import { startGateway } from "../gateway.ts";
import { stopOnSignals } from "../lifecycle.ts";
import type { Settings } from "../settings.ts";
import { progressLine } from "./progress.ts";

export async function serveCommand(settings: Settings): Promise<void> {
  const logger = pino({ level: settings.logLevel, redact: ["req.headers.authorization"] }, pino.destination({ dest: 2, sync: true }));
  const show = progressLine(process.stderr);
  const gateway = await startGateway({
    settings,
    logger,
    onInstallProgress: (progress: InstallProgress) => show(`llama-server: ${progress.phase} ${progress.detail}`, progress.done, progress.total),
  });
  stopOnSignals(gateway.stop, (error) => logger.error({ err: error }, "the gateway did not stop cleanly"));
  console.log(`Model Gateway listens on ${gateway.url}; its document is ${settings.configPath}`);
  const [model] = gateway.status().models;
  const stopFollowing = gateway.journal.follow(({ type, data }) => {
    const condition = data as { subject?: string; type?: string; status?: string };
    if (type !== "condition" || condition.subject !== "gateway" || condition.type !== "Synced" || condition.status !== "True") return;
    stopFollowing();
    const name = model?.id ?? gateway.status().models[0]?.id;
    if (name === undefined) return;
    console.log(`\nReady. Try it:\n\n  ${tryLine(gateway.url, name)}\n`);
  });
}

function tryLine(url: string, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Who are you?" }] });
  return `curl -N ${url}/beta/v1/chat/completions -H 'Content-Type: application/json' -d '${body}'`;
}
