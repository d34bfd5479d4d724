// A LoRA adapter for the computed models, of zeros: the model says with it what it says without.
import { ggufBytes } from "./scripted/gguf-writer.ts";

/** The file. `width` is the model's. */
export function adapterBytes(name: string, width = 64): Uint8Array {
  const text = (value: string) => ({ type: "string", value }) as const;
  const rank = 4;
  return ggufBytes({
    metadata: [
      ["general.type", text("adapter")],
      ["general.architecture", text("llama")],
      ["general.name", text(name)],
      ["adapter.type", text("lora")],
      ["adapter.lora.alpha", { type: "float32", value: 8 }],
    ],
    tensors: [
      { name: "blk.0.attn_q.weight.lora_a", shape: [width, rank] },
      { name: "blk.0.attn_q.weight.lora_b", shape: [rank, width] },
    ],
  });
}
