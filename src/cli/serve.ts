// Runs the gateway in the foreground and prints what to do next: as text for a person, as JSON lines for programs.
import { setFlagsFromString } from "node:v8";
import pino, { type Logger } from "pino";
import { type Gateway, startGateway } from "../app/gateway.ts";
import type { InstallProgress } from "../engines/install/build.ts";
import { type ServiceManager, serviceManager } from "../engines/process/service-manager.ts";
import { type CommandLine, type Settings, version } from "../settings/settings.ts";
import type { Condition } from "../status/finding.ts";
import type { JournalEvent } from "../status/journal.ts";
import { forgetSecrets } from "./forget-secrets.ts";
import { isForPrograms } from "./log-format.ts";
import { jsonLines, logOutput } from "./log-output.ts";
import { installProgress } from "./progress.ts";
import { stopOnSignals } from "./signals.ts";
import { createStartScreen } from "./start-screen.ts";

/** Where a license key could get into a log line. The raw packet is that of a request which the HTTP parser refused. */
const secretFields = [
  "req.headers.authorization",
  'req.headers["x-license-key"]',
  'req.headers["x-api-key"]',
  "err.rawPacket",
] as const;

/**
 * How far the heap grows before V8 marks it. Buffers count toward that limit, and V8's own one is just above a heap that changes little:
 * it marked ours for every other body of 20 MB, which took 36 ms in place of 17. Not before the start is over: with a thousand models
 * its garbage lay between what chats use, and each took a hundredth or two longer. `NODE_OPTIONS` does not take this flag.
 */
const heapGrowth = "--heap-growing-percent=300";

/** Resolves with null when the gateway listens. */
export async function serveCommand({ settings, flags }: CommandLine): Promise<null> {
  const { stdout, stderr } = process;
  const isJson = isForPrograms(settings.logFormat, stdout);
  // A person reads the stages; of the log what is wrong.
  const level = isJson || flags.includes("log-level") || settings.logLevel !== "info" ? settings.logLevel : "warn";
  const output = logOutput(stderr, isForPrograms(settings.logFormat, stderr));
  const logger = pino({ level, redact: [...secretFields] }, output);
  const left = forgetSecrets();
  if (left.length > 0)
    logger.warn({ variables: left }, "other processes of this user can read secrets in the environment: use files");
  // Output to a closed terminal fails: the shutdown goes on in order.
  for (const stream of [stdout, stderr]) stream.on("error", () => undefined);
  // Node prints its own as text.
  process.removeAllListeners("warning").on("warning", (warning) => logger.warn({ err: warning }, "warning of Node"));
  const announce = withServiceManager(
    isJson ? announceToPrograms(settings, logger) : announceToPerson(settings),
    serviceManager(settings.environment, (error) =>
      logger.error({ err: error }, "the service manager was not reached"),
    ),
  );
  const giveUp = new AbortController();
  const starting = startGateway({ settings, logger, onInstallProgress: announce.install, signal: giveUp.signal });
  stopOnSignals(
    async () => {
      announce.stopping("Stopping: responses in flight may end first. A second signal stops at once.");
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
  setFlagsFromString(heapGrowth);
  announce.listening(gateway);
  follow(gateway, announce);
  return null;
}

/** What a start shows. */
interface Announce {
  readonly install: (progress: InstallProgress) => void;
  readonly listening: (gateway: Gateway) => void;
  readonly event: (event: JournalEvent) => void;
  readonly notReady: (condition: Condition) => void;
  /** Once, when everything is as the document says; null: there is no model to try. */
  readonly ready: (gateway: Gateway, command: string | null) => void;
  readonly stopping: (message: string) => void;
}

function announceToPrograms({ configPath }: Settings, logger: Logger): Announce {
  const lines = jsonLines(process.stdout);
  return {
    install: installProgress("llama-server", process.stderr, (step) => logger.info(step, "installing llama-server")),
    listening: ({ url }) =>
      lines.info({ url, document: configPath }, `Model Gateway listens on ${url}; its document is ${configPath}`),
    event: () => undefined,
    notReady: ({ reason, message }) => lines.info({ reason }, `Not ready: ${message}`),
    ready: (_gateway, command) =>
      command === null
        ? lines.info("Ready. No model yet: add one to the document.")
        : lines.info({ try: command }, "Ready. Try it."),
    stopping: (message) => lines.info(message),
  };
}

function announceToPerson({ configPath }: Settings): Announce {
  const screen = createStartScreen(process.stdout);
  screen.title(`Model Gateway ${version}`);
  return {
    install: screen.install,
    listening: ({ url }) => screen.done(`listens on ${url}`),
    event: screen.action,
    notReady: ({ message }) => screen.note(`Not ready: ${message}`),
    ready: (gateway, command) => screen.ready(gateway, configPath, command),
    stopping: screen.note,
  };
}

/** `systemctl status` shows the same. */
function withServiceManager(announce: Announce, tell: ServiceManager): Announce {
  return {
    ...announce,
    listening: (gateway) => {
      announce.listening(gateway);
      tell(`listens on ${gateway.url}`, "READY=1");
    },
    notReady: (condition) => {
      announce.notReady(condition);
      tell(`not ready: ${condition.message}`);
    },
    ready: (gateway, command) => {
      announce.ready(gateway, command);
      tell(`ready on ${gateway.url}`);
    },
    stopping: (message) => {
      announce.stopping(message);
      tell("stopping", "STOPPING=1");
    },
  };
}

/** States of a start that pass by themselves. */
const passing = new Set(["NotStarted", "Starting", "EngineInstalling"]);

function follow(gateway: Gateway, announce: Announce): void {
  const { journal } = gateway;
  let isReady = false;
  const look = (event: JournalEvent): void => {
    announce.event(event);
    const condition = event.data as Condition & { readonly subject: string };
    if (isReady || event.type !== "condition" || condition.subject !== "gateway") return;
    const { type, status, reason } = condition;
    if (type === "RouterReady" && status === "False" && !passing.has(reason)) announce.notReady(condition);
    if (type !== "Synced" || status !== "True") return;
    isReady = true;
    const name = gateway.status().models[0]?.id;
    announce.ready(gateway, name === undefined ? null : tryLine(gateway, name));
  };
  // The first pass is over by now.
  for (const event of journal.since("0")) announce.event(event);
  journal.follow(look);
}

function tryLine({ url, needsKey }: Gateway, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Who are you?" }] });
  const key = needsKey() ? " -H 'Authorization: Bearer LICENSE_KEY'" : "";
  return `curl -N ${url}/v1/chat/completions${key} -H 'Content-Type: application/json' -d '${body}'`;
}
