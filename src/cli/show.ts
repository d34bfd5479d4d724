// `show MODEL`: what its files hold, and how it is set up.
import type { ModelEntry, NativeShown, StatusBody } from "../client/index.ts";
import { memoryText } from "../core/memory-text.ts";
import type { CommandLine } from "../settings/settings.ts";
import { stateOf } from "../status/attention.ts";
import { withGateway } from "./connect.ts";
import { bytesText, printJson, printTable } from "./text.ts";

type Model = StatusBody["models"][number];

export async function showCommand({ settings, operands, json }: CommandLine): Promise<number> {
  const [name = ""] = operands;
  const { shown, entry, model } = await withGateway({ settings }, async (client) => {
    const [shown, entry, status] = await Promise.all([client.show(name), client.model(name), client.status()]);
    const model =
      "models" in status ? status.models.find(({ id }) => id === (entry.variant_of ?? entry.id)) : undefined;
    return { shown, entry, model: model ?? null };
  });
  if (json) return printJson({ id: entry.id, status: model, ...shown });
  printTable([["MODEL", entry.id], ...factsOf(shown, entry, model)]);
  for (const condition of model?.conditions ?? [])
    if (condition.status === "False" && condition.type !== "Loaded")
      console.log(`! ${condition.type} ${condition.reason}: ${condition.message}`);
  return 0;
}

function factsOf({ details, capabilities, license }: NativeShown, entry: ModelEntry, model: Model | null) {
  const { family, parameter_size, quantization_level } = details;
  const { context_length: context, n_ctx_train: trained, aliases, variant_of: of } = entry;
  const { need, memoryBytes } = model?.runtime ?? {};
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["Variant of", of],
    ["Architecture", family],
    ["Parameters", parameter_size],
    ["Quantization", quantization_level],
    ["Context", [context, trained && `trained with ${trained}`].filter(Boolean).join(", ")],
    ["Aliases", aliases.join(", ")],
    ["Can do", capabilities.join(", ")],
    ["License", license?.split("\n")[0]],
    ["Size", model?.runtime ? bytesText(model.runtime.bytes) : undefined],
    ["State", model ? stateOf(model) : undefined],
    ["Needs", need ? `${memoryText(need.bytes)} of memory (${need.source})` : undefined],
    ["Takes", memoryBytes ? memoryText(memoryBytes) : undefined],
    ["In document", model ? (model.desired ? "yes" : "no") : undefined],
  ];
  return rows.flatMap(([key, value]) => (value ? [[key, value]] : []));
}
