// A child process that behaves as badly as its flags say; run by tests of whatever supervises processes.
//   --delay=MS          says `ready` only after that time
//   --exit=CODE         ends by itself once it is ready
//   --ignore-term       is deaf to SIGTERM
//   --print=BYTES       writes that much, in lines, before it is ready
//   --fork              has a child in its own process group that inherits its output and is deaf to SIGTERM
//   --fork-apart        the same child in a process group of its own
//   --models=PORT,PORT  has a child for each, as a router has: `--port PORT`, which ends when its standard input does
//   --until-stdin-ends  is such a child
import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, openSync, unlinkSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";

const flags = process.argv.slice(2);

function valueOf(name: string): string | undefined {
  return flags.find((flag) => flag.startsWith(`--${name}=`))?.slice(name.length + 3);
}

/** Straight to the file: a buffered line would be lost with a process that ends by a signal. */
function say(line: string): void {
  writeSync(1, `${line}\n`);
}

function startChild(stdin: "ignore" | number, ...childFlags: readonly string[]): void {
  const apart = childFlags.includes("--apart");
  spawn(process.execPath, [fileURLToPath(import.meta.url), ...childFlags], {
    detached: apart,
    stdio: [stdin, "inherit", "inherit"],
  });
}

/** With a pipe that only we hold open, as the router has it: Node's own would be a socket. */
function startModel(port: string): void {
  const fifo = `input-${port}`;
  execFileSync("mkfifo", [fifo]);
  const readEnd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  openSync(fifo, constants.O_WRONLY);
  unlinkSync(fifo);
  startChild(readEnd, "--until-stdin-ends", "--name=model", "--port", port);
  closeSync(readEnd);
}

if (flags.includes("--ignore-term")) process.on("SIGTERM", () => say("TERM ignored"));
const bytes = Number(valueOf("print") ?? 0);
for (let line = 0, written = 0; written < bytes; line++) {
  const text = `line ${line} ${"x".repeat(80)}`;
  written += text.length + 1;
  say(text);
}
if (flags.includes("--fork")) startChild("ignore", "--ignore-term", "--name=grandchild");
if (flags.includes("--fork-apart")) startChild("ignore", "--ignore-term", "--apart", "--name=grandchild");
for (const port of valueOf("models")?.split(",") ?? []) startModel(port);

function becomeReady(): void {
  say(`${valueOf("name") ?? "engine"} ready ${process.pid}`);
  const code = valueOf("exit");
  if (code !== undefined) process.exit(Number(code));
}

const delay = Number(valueOf("delay") ?? 0);
if (delay > 0) setTimeout(becomeReady, delay);
else becomeReady();

if (flags.includes("--until-stdin-ends")) {
  process.stdin.resume();
  process.stdin.on("end", () => process.exit(0));
} else {
  setInterval(() => undefined, 60_000);
}
