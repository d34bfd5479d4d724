// `voice`, `transcriber`, `speak`, `transcribe`: text to speech and speech to text.
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { GatewayClientError } from "../client/index.ts";
import { GatewayError, reasonOf } from "../core/errors.ts";
import type { SpeechKind } from "../plan/observed.ts";
import type { CommandLine } from "../settings/settings.ts";
import { choiceProblem } from "../status/speech-choice.ts";
import { withGateway } from "./connect.ts";
import { writeNew } from "./new-file.ts";
import { bytesText, printJson, printTable } from "./text.ts";

const kinds = {
  synthesis: { field: "voice", none: "No voice is here" },
  transcription: { field: "model", none: "No transcription model is here" },
} as const;

/** Without a choice: what is here, and which is chosen. */
export async function chooseCommand(
  kind: SpeechKind,
  { settings, operands, force, command }: CommandLine,
): Promise<number> {
  const [choice] = operands;
  const { field, none } = kinds[kind];
  if (choice !== undefined) {
    const patch = { speech: { [kind]: choice === "off" ? null : { [field]: choice } } };
    const { converged } = await withGateway({ settings, change: { force } }, async (client) => {
      const problem = choiceProblem(await client.desired.planPatch(patch), kind);
      if (problem === null) return client.desired.patch(patch, { wait: true });
      const search = settings.command(command, "search");
      throw new GatewayError(
        "invalid_request",
        `${choice} cannot be had: ${problem} (\`${search}\` lists what there is)`,
      );
    });
    console.log(choice === "off" ? `The ${field} is off.` : `The ${field} is ${choice}.`);
    return converged === false ? 1 : 0;
  }
  return withGateway({ settings }, async (client) => {
    const [{ document }, names] = await Promise.all([
      client.desired.get(),
      (kind === "synthesis" ? client.speech.voices.cached() : client.speech.transcriptionModels.cached()).catch(
        noneIfOff,
      ),
    ]);
    const chosen = Object.values(document.speech?.[kind] ?? {})[0];
    for (const name of names) console.log(name === chosen ? `${name}  (chosen)` : name);
    if (names.length === 0) console.log(`${none}: \`${settings.command(command, "search")}\` lists what there is.`);
    if (chosen === undefined) console.log(`None is chosen: \`${settings.command(command, "NAME")}\` does it.`);
    else if (!names.includes(chosen)) console.log(`${chosen} is chosen, and not here yet.`);
    return 0;
  });
}

function noneIfOff(error: unknown): readonly string[] {
  if (error instanceof GatewayClientError && error.code === "speech_off") return [];
  throw error;
}

export async function voiceSearchCommand({ settings, operands, json }: CommandLine): Promise<number> {
  const found = await withGateway({ settings }, (client) => client.speech.voices.search(operands.join(" ")));
  if (json) return printJson(found);
  const rows = found.map(({ key, languageName, country, quality, sizeBytes }) => [
    key,
    `${languageName}, ${country}`,
    quality,
    bytesText(sizeBytes),
  ]);
  printFound([["VOICE", "LANGUAGE", "QUALITY", "SIZE"], ...rows]);
  return 0;
}

export async function transcriberSearchCommand({ settings, operands, json }: CommandLine): Promise<number> {
  const query = operands.join(" ");
  const found = await withGateway({ settings }, (client) => client.speech.transcriptionModels.search(query));
  if (json) return printJson(found);
  printFound([["MODEL", "SIZE"], ...found.map(({ path, size }) => [path, bytesText(size)])]);
  return 0;
}

function printFound(rows: readonly (readonly string[])[]): void {
  if (rows.length > 1) printTable(rows);
  else console.log("Nothing is found.");
}

export async function speakCommand({ settings, operands, given }: CommandLine): Promise<number> {
  const file = given("file");
  if (file === undefined)
    throw new GatewayError("invalid_request", "name the sound file with -f FILE, or -f - for a pipe");
  // OpenAI's own names mean the voice of the document.
  const request = { input: operands.join(" "), voice: given("voice") ?? "alloy" };
  const sound = await withGateway({ settings }, (client) => client.speech.speak(request));
  const bytes = Buffer.from(await sound.arrayBuffer());
  if (file === "-") process.stdout.write(bytes);
  else {
    await writeNew(file, bytes);
    console.log(`${file}: ${bytesText(bytes.length)}`);
  }
  return 0;
}

export async function transcribeCommand({ settings, operands }: CommandLine): Promise<number> {
  const [file = ""] = operands;
  const bytes = await readFile(file).catch((error: unknown) => {
    throw new GatewayError("invalid_request", `${file} cannot be read (${reasonOf(error)}): name a sound file`);
  });
  const sound = new Blob([bytes]);
  const fileName = basename(file);
  const { text } = await withGateway({ settings }, (client) => client.speech.transcribe(sound, { fileName }));
  console.log(text.trim());
  return 0;
}
