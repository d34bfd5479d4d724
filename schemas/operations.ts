// Every operation that the gateway serves. The server, this table and the OpenAPI document agree: a test compares them.

import { ownOperations } from "./operations/admin.ts";
import { diskOperations } from "./operations/disk.ts";
import { editOperations } from "./operations/edits.ts";
import { llamaOperations } from "./operations/llama.ts";
import { nativeOperations } from "./operations/ollama.ts";
import { compatOperations } from "./operations/openai.ts";
import type { Operation } from "./operations/operation.ts";
import { speechOperations } from "./operations/speech.ts";

export const operations: readonly Operation[] = [
  ...ownOperations,
  ...editOperations,
  ...diskOperations,
  ...compatOperations,
  ...speechOperations,
  ...nativeOperations,
  ...llamaOperations,
];
