// `bench ID`: measures a model by the running gateway, which unloads it before.
import type { BenchBody } from "../client/index.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { printJson, printTable } from "./text.ts";

export async function benchCommand({ operands, settings, json, flags }: CommandLine): Promise<number> {
  const [model = ""] = operands;
  const result = await withGateway({ settings, change: { force: flags.includes("force") } }, async (client) => {
    await client.model(model);
    console.error(`${model} is measured, and its requests wait: this takes minutes, Ctrl+C ends it.`);
    return client.bench(model);
  });
  if (json) return printJson(result);
  printResult(result);
  return 0;
}

function printResult({ model, type, file, build, hardware, settings, leftOut, tests }: BenchBody): void {
  const set = Object.entries(settings).map(([key, value]) => `${key} ${value}`);
  printTable([
    ["Model", `${model}, ${type}`],
    ["File", file],
    ["Engine", `llama.cpp ${build}`],
    ["Hardware", hardware],
    ["Settings", set.join(", ") || "the engine's own"],
    ...(leftOut.length > 0 ? [["Left out", `${leftOut.join(", ")} (llama-bench has no such option)`]] : []),
  ]);
  console.log("");
  printTable([
    ["TEST", "TOKENS", "TOKENS/S", "±"],
    ...tests.map((test) => [
      test.kind,
      String(test.tokens),
      speedText(test.tokensPerSecond),
      speedText(test.deviation),
    ]),
  ]);
}

function speedText(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0);
}
