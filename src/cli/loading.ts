// `load`, `eject`, `ctx`: what of a model is in memory.
import { GatewayError } from "../core/errors.ts";
import { wholeNumber } from "../settings/kinds.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { elapsedText } from "./text.ts";

export async function loadCommand({ settings, operands, given }: CommandLine): Promise<number> {
  const [model = ""] = operands;
  const begun = performance.now();
  const text = given("keep-alive");
  const keepAlive = text !== undefined && /^-?\d+$/.test(text) ? Number(text) : text;
  await withGateway({ settings }, (client) => client.load(model, keepAlive === undefined ? {} : { keepAlive }));
  console.log(`${model} is loaded (${elapsedText(Math.round(performance.now() - begun))}).`);
  return 0;
}

export async function ejectCommand({ settings, operands, force }: CommandLine): Promise<number> {
  const [name = ""] = operands;
  const { model } = await withGateway({ settings, change: { force } }, (client) => client.eject(name));
  console.log(`${model} is unloaded.`);
  return 0;
}

export async function contextCommand({ settings, operands, force }: CommandLine): Promise<number> {
  const [name = "", tokens] = operands;
  if (tokens === undefined) {
    const { context_length: size } = await withGateway({ settings }, (client) => client.model(name));
    if (size === undefined)
      throw new GatewayError("invalid_request", `the context size of ${name} is not known yet: load it first`);
    console.log(`${size} tokens`);
    return 0;
  }
  const size = wholeNumber(tokens, "TOKENS", 1, 16_777_216);
  const set = await withGateway({ settings, change: { force } }, (client) => client.setContextSize(name, size));
  console.log(`${set.model} has a context of ${set.ctx_size} tokens.`);
  return 0;
}
