// A Python that has Piper, as far as anybody can tell who asks it for Piper: run by tests through a script of that name.
// Its first argument says what it is: a generation, `no-flask` or `nothing`, and behind a `+` how many ms it works on each piece;
// the rest is what a Python would get.
import { existsSync } from "node:fs";
import { basename } from "node:path";
import type { PiperGeneration } from "../../src/speech/piper-http.ts";
import { createPiperStandIn } from "./piper-stand-ins.ts";

const [what = "nothing", flag, code = "", ...rest] = process.argv.slice(2);
const [kind = "", startMs = "0"] = what.split("+");

function valueOf(name: string): string {
  return rest[rest.indexOf(name) + 1] ?? "";
}

function fail(words: string, status: number): never {
  process.stderr.write(`${words}\n`);
  process.exit(status);
}

if (flag === "-c") {
  process.stdout.write(`piper:${["no-flask", "nothing"].includes(kind) ? kind : "all"}\n`);
} else if (flag === "-m" && code === "piper.http_server") {
  const model = valueOf("--model");
  if (!existsSync(model)) fail(`ValueError: Unable to find voice: ${model} (use piper.download_voices)`, 1);
  if (rest.indexOf("--download-dir") < 0) fail("voices would be downloaded into the working folder", 2);
  const voice = basename(model, ".onnx");
  // Another voice sounds otherwise: by the length of its name.
  const { server } = createPiperStandIn({
    generation: kind as PiperGeneration,
    voices: { [voice]: 30 * voice.length },
    work: { startMs: Number(startMs), msPerCharacter: 0 },
  });
  server.on("error", (error) => fail(error.message, 1));
  server.listen(Number(valueOf("--port")), valueOf("--host"));
} else {
  fail(`unknown: ${process.argv.join(" ")}`, 2);
}
