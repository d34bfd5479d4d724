// A Python that has Piper, as far as anybody can tell who asks it for Piper: run by tests through a script of that name.
// Its first argument says what it is: a generation, `no-flask` or `nothing`, and behind a `+` each how many ms it works on a piece,
// and on each of its characters; the rest is what a Python would get.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { createPiperStandIn, type StandInGeneration } from "./piper-stand-ins.ts";

const [what = "nothing", flag, code = "", ...rest] = process.argv.slice(2);
const [kind = "", startMs = "0", msPerCharacter = "0"] = what.split("+");

/** What all generations take, with a value. */
const known = new Set(
  "-m --model --host --port -s --speaker --length-scale --noise-scale --noise-w --sentence-silence --data-dir --download-dir".split(
    " ",
  ),
);

/** As argparse reads them: what it does not know ends it. */
function flagsOf(args: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (let place = 0; place < args.length; place++) {
    const name = args[place] ?? "";
    if (["--cuda", "--debug"].includes(name)) continue;
    const value = args[++place];
    if (!known.has(name)) fail(`http_server.py: error: unrecognized arguments: ${name}`, 2);
    if (value === undefined) fail(`http_server.py: error: argument ${name}: expected one argument`, 2);
    flags.set(name, value);
  }
  return flags;
}

function fail(words: string, status: number): never {
  process.stderr.write(`${words}\n`);
  process.exit(status);
}

/** Of the voices that lie in the folder whole; the one that it is started with first. */
function voicesIn(folder: string, first: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".onnx.json"));
  return [...new Set([first, ...names.map((name) => basename(name, ".onnx.json"))])];
}

function sampleRateOf(model: string): number {
  if (!existsSync(`${model}.json`)) return 22_050;
  const { audio } = JSON.parse(readFileSync(`${model}.json`, "utf8")) as { audio: { sample_rate: number } };
  return audio.sample_rate;
}

if (flag === "-c") {
  process.exit(["no-flask", "nothing"].includes(kind) ? 1 : 0);
} else if (flag === "-m" && code === "piper.http_server") {
  const flags = flagsOf(rest);
  const model = flags.get("--model") ?? fail("the following arguments are required: -m/--model", 2);
  if (!existsSync(model)) fail(`ValueError: Unable to find voice: ${model} (use piper.download_voices)`, 1);
  const folder = flags.get("--data-dir") ?? ".";
  if (flags.get("--download-dir") === undefined) fail("voices would be downloaded into the working folder", 2);
  const voices = voicesIn(folder, basename(model, ".onnx"));
  const { server } = createPiperStandIn({
    generation: kind as StandInGeneration,
    // Another voice sounds otherwise: by the length of its name.
    voices: Object.fromEntries(voices.map((voice) => [voice, 30 * voice.length])),
    sampleRate: sampleRateOf(model),
    work: { startMs: Number(startMs), msPerCharacter: Number(msPerCharacter) },
  });
  server.on("error", (error) => fail(error.message, 1));
  server.listen(Number(flags.get("--port") ?? 5_000), flags.get("--host") ?? "0.0.0.0");
} else {
  fail(`unknown: ${process.argv.join(" ")}`, 2);
}
