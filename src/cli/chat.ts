// A chat in the terminal: lines in, streamed answers out. Ctrl+C stops the answer and not the program.
import { createInterface } from "node:readline";
import { type ChatMessage, type GatewayClient, GatewayClientError } from "../client/index.ts";
import { toGatewayError } from "../core/errors.ts";
import type { CommandLine } from "../settings/settings.ts";
import { chatHelp, chatLine, chatText } from "./chat-lines.ts";
import { paintFor } from "./colors.ts";
import { withGateway } from "./connect.ts";
import { writeNew } from "./new-file.ts";

/** Until the person ends it. `told`: what stands before the chat. */
export async function chatInTerminal(
  { settings, force }: CommandLine,
  client: GatewayClient,
  model: string,
  told: readonly ChatMessage[],
): Promise<number> {
  const { stdin, stdout } = process;
  const paint = paintFor(stdout);
  const note = (text: string): void => console.log(paint("dim", text));
  const terminal = createInterface({ input: stdin, output: stdout, prompt: ">>> " });
  let messages = told;
  let answering: AbortController | null = null;
  let begun = "";

  async function answer(content: string): Promise<void> {
    const asked: readonly ChatMessage[] = [...messages, { role: "user", content }];
    const stop = new AbortController();
    answering = stop;
    let said = "";
    let isReasoning = false;
    try {
      for await (const part of client.chat({ model, messages: asked }, { signal: stop.signal })) {
        stdout.write(paint("dim", part.reasoning));
        // The answer begins on a line of its own.
        if (said === "" && part.content !== "" && isReasoning) stdout.write("\n\n");
        isReasoning ||= part.reasoning !== "";
        stdout.write(part.content);
        said += part.content;
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error;
      note(" (stopped)");
    } finally {
      answering = null;
      stdout.write("\n");
    }
    messages = [...asked, { role: "assistant", content: said }];
  }

  async function run(text: string): Promise<boolean> {
    const line = chatLine(text);
    if (line.kind === "say") await answer(line.text);
    else if (line.kind === "help") note(chatHelp);
    else if (line.kind === "wrong") note(line.message);
    else if (line.kind === "clear") {
      messages = told;
      note("Forgotten.");
    } else if (line.kind === "save") {
      await writeNew(line.file, chatText(line.file, model, messages));
      note(`Saved in ${line.file}.`);
    } else if (line.kind === "context") {
      const size = line.size;
      const tokens =
        size === null
          ? (await client.model(model)).context_length
          : (await withGateway({ settings, change: { force } }, (own) => own.setContextSize(model, size))).ctx_size;
      note(`${tokens ?? "An unknown number of"} tokens.`);
    }
    return line.kind !== "bye";
  }

  terminal.on("SIGINT", () => {
    if (answering) return answering.abort();
    stdout.write("\n");
    note("Ctrl+D ends the chat.");
    begun = "";
    // Also what was typed so far.
    terminal.write(null, { ctrl: true, name: "u" });
    terminal.prompt();
  });
  note(`${model}: /help lists what can be typed.`);
  terminal.prompt();
  try {
    for await (const text of terminal) {
      begun += text;
      if (begun.endsWith("\\")) {
        begun = `${begun.slice(0, -1)}\n`;
        terminal.setPrompt("... ");
      } else {
        const whole = begun;
        begun = "";
        terminal.setPrompt(">>> ");
        const goesOn = await run(whole).catch((error: unknown) => {
          if (error instanceof GatewayClientError && error.code === "unreachable") throw error;
          note(error instanceof GatewayClientError ? error.message : toGatewayError(error).message);
          return true;
        });
        if (!goesOn) break;
      }
      terminal.prompt();
    }
  } finally {
    terminal.close();
  }
  return 0;
}
