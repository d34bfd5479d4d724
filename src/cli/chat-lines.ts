// What is typed in a chat in the terminal, and the chat as a file. Pure.
import type { ChatMessage } from "../client/index.ts";

export type ChatLine =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "context"; readonly size: number | null }
  | { readonly kind: "save"; readonly file: string }
  | { readonly kind: "clear" | "help" | "bye" | "nothing" }
  | { readonly kind: "wrong"; readonly message: string };

export const chatHelp = `  /ctx         show the context size; /ctx 16384 sets it for the model
  /clear       begin again: the model forgets what was said
  /save FILE   write the chat as Markdown, or as JSON where FILE ends in .json
  /help        this list
  /bye         end; so does Ctrl+D
A line that ends in \\ goes on in the next one. Ctrl+C stops the answer.`;

export function chatLine(text: string): ChatLine {
  const line = text.trim();
  if (line === "") return { kind: "nothing" };
  if (!line.startsWith("/")) return { kind: "say", text: line };
  const [, command = "", rest = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(line) ?? [];
  if (command === "clear" || command === "help" || command === "bye") return { kind: command };
  if (command === "save")
    return rest === "" ? { kind: "wrong", message: "name a file: /save chat.md" } : { kind: "save", file: rest };
  if (command !== "ctx") return { kind: "wrong", message: `there is no /${command}: /help lists what there is` };
  if (rest === "") return { kind: "context", size: null };
  return /^[1-9]\d{0,7}$/.test(rest)
    ? { kind: "context", size: Number(rest) }
    : { kind: "wrong", message: "the context size is a number of tokens: /ctx 16384" };
}

const speakers = { system: "System", user: "You", assistant: "Model" } as const;

export function chatText(file: string, model: string, messages: readonly ChatMessage[]): string {
  if (file.endsWith(".json")) return `${JSON.stringify({ model, messages }, null, 2)}\n`;
  const parts = messages.map(({ role, content }) => `## ${speakers[role]}\n\n${content.trim()}\n`);
  return [`# Chat with ${model}\n`, ...parts].join("\n");
}
