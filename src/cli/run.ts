// `run MODEL`: a chat in the terminal, or one answer to a prompt.
import { text } from "node:stream/consumers";
import type { ChatMessage, GatewayClient } from "../client/index.ts";
import { GatewayClientError } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine } from "../settings/settings.ts";
import { isConfirmed } from "./ask.ts";
import { chatInTerminal } from "./chat.ts";
import { withGateway } from "./connect.ts";
import { pullHere } from "./pull.ts";

export async function runModelCommand(line: CommandLine): Promise<number> {
  const [model = "", ...words] = line.operands;
  const { settings, given } = line;
  if (words.length === 0 && !process.stdin.isTTY)
    throw new GatewayError(
      "invalid_request",
      "a chat needs a terminal: give a prompt after the model, or - to read it from standard input",
    );
  const code = await withGateway({ settings }, (client) => present(line, client, model));
  if (code !== 0) return code;
  const system = given("system");
  const told: readonly ChatMessage[] = system === undefined ? [] : [{ role: "system", content: system }];
  return withGateway({ settings }, async (client) => {
    if (words.length === 0) return chatInTerminal(line, client, model, told);
    const prompt = words.length === 1 && words[0] === "-" ? await text(process.stdin) : words.join(" ");
    if (prompt.trim() === "") throw new GatewayError("invalid_request", "the prompt is empty");
    let last = "";
    for await (const { content } of client.chat({ model, messages: [...told, { role: "user", content: prompt }] })) {
      process.stdout.write(content);
      last = content || last;
    }
    if (!last.endsWith("\n")) process.stdout.write("\n");
    return 0;
  });
}

/** Resolves with 0 once the model is here and can chat, else with the exit code. */
async function present(line: CommandLine, client: GatewayClient, model: string): Promise<number> {
  const shown = await client.show(model).catch((error: unknown) => {
    // A name without a slash is none of the hub; the error has the nearest ones that are here.
    if (error instanceof GatewayClientError && error.status === 404 && model.includes("/")) return null;
    throw error;
  });
  if (shown?.capabilities.includes("completion") === false)
    throw new GatewayError("invalid_request", `${model} cannot chat: it can do ${shown.capabilities.join(", ")}`);
  if (shown) return 0;
  const { command } = line.settings;
  const mayPull = line.flags.includes("pull") || (await isConfirmed(`${model} is not here. Pull it?`));
  if (mayPull) return pullHere(line, model);
  throw new GatewayError(
    "invalid_request",
    `${model} is not here: \`${command("pull", model)}\` gets it, and so does --pull`,
  );
}
