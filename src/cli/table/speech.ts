// Commands about speech.
import { type Commands, changing, gateway, plainExit } from "./command.ts";

export const speechCommands: Commands = {
  voice: {
    operands: "[VOICE]",
    flags: changing,
    summary: "list the voices that are here, or speak with VOICE from now on",
    notes: "Ends once it is in force; off turns text to speech off.",
    exit: plainExit,
    examples: ["voice", "voice en_US-lessac-medium"],
    run: async (line) => (await import("../speech.ts")).chooseCommand("synthesis", line),
  },
  "voice search": {
    operands: "[QUERY…]",
    flags: [...gateway, "json"],
    summary: "search the voices by id, speaker or language",
    exit: plainExit,
    examples: ["voice search english", "voice search de_DE"],
    run: async (line) => (await import("../speech.ts")).voiceSearchCommand(line),
  },
  transcriber: {
    operands: "[MODEL]",
    flags: changing,
    summary: "list the transcription models that are here, or choose one",
    notes: "Ends once it is in force; off turns speech to text off.",
    exit: plainExit,
    examples: ["transcriber", "transcriber base.en"],
    run: async (line) => (await import("../speech.ts")).chooseCommand("transcription", line),
  },
  "transcriber search": {
    operands: "[QUERY…]",
    flags: [...gateway, "json"],
    summary: "search the transcription models by file name",
    exit: plainExit,
    examples: ["transcriber search", "transcriber search small"],
    run: async (line) => (await import("../speech.ts")).transcriberSearchCommand(line),
  },
  speak: {
    operands: "TEXT…",
    shown: "-f FILE [--voice VOICE]",
    flags: [...gateway, "file", "voice"],
    summary: "turn text into speech, as a WAV file",
    notes:
      "Without --voice in the voice of the document. - as FILE is standard output; a file that is there is not replaced.",
    exit: plainExit,
    examples: ['speak "Hello there." -f hello.wav', 'speak "Guten Tag." -f tag.wav --voice de_DE-thorsten-medium'],
    run: async (line) => (await import("../speech.ts")).speakCommand(line),
  },
  transcribe: {
    operands: "FILE",
    flags: gateway,
    summary: "turn the speech of a sound file into text",
    exit: plainExit,
    examples: ["transcribe hello.wav", "transcribe talk.wav > talk.txt"],
    run: async (line) => (await import("../speech.ts")).transcribeCommand(line),
  },
};
