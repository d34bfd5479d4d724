// What the first start writes: a commented gateway.yaml that declares the starter model. Pure.
import type { OwnCommand } from "../core/own-command.ts";
import { starterFileName, starterId } from "./starter-model.ts";

export function firstDocument(schemaPath: string, command: OwnCommand): string {
  return `# yaml-language-server: $schema=${schemaPath}
#
# What should be true on this machine. Edit and save: Model Gateway makes it so, and says at
# GET /status what it is doing. Calls of the HTTP API change the same document.
version: 1

context:
  default: 8192          # context size, in tokens, of models without their own; without this the router decides

models:
  # A tiny computed model, so that there is something to chat with before the first pull.
  - id: ${starterId}
    source: ./${starterFileName}

  # A real one, pulled from the hub when you remove the "#":
  # - ggml-org/gemma-3-270m-it-GGUF:Q8_0

  # With settings of its own:
  # - id: bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M
  #   ctxSize: 16384
  #   preset: { flash-attn: "on" }   # further llama-server options
  #   keep: true                     # never pruned

# Speech to text and text to speech. What installs the engines:
#   ${command("engine", "install", "whisper")}
#   ${command("engine", "install", "sherpa")}
# speech:
#   transcription: { model: base.en }
#   synthesis: { voice: en_US-lessac-medium }

# Share a model that is too big for this machine with others, on which \`model-gateway worker --host THEIR-ADDRESS\` runs:
# rpc: { mode: rpc, workers: ["192.168.1.20:50052"] }

# prune: true            # also delete models that this gateway pulled and that are no longer listed
# suspend: true          # observe and plan, but apply nothing
`;
}
