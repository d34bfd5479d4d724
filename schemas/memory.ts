// What models take of memory, as it goes over the wire.
import { exact, integer, maybe } from "./shapes.ts";

export const byDeviceSchema = {
  type: "object",
  description: "Bytes by device, as the engine names them; `Host` is main memory.",
  additionalProperties: { type: "integer" },
} as const;

export const needSchema = {
  title: "MemoryNeed",
  ...exact({
    bytes: integer("Of all devices: measured when it was loaded with these settings, else estimated."),
    source: { enum: ["estimated", "measured"] },
    estimated: maybe(byDeviceSchema),
    measured: maybe(byDeviceSchema),
  }),
} as const;

export const needOrNullSchema = {
  description: "What it takes of memory with its settings; null: not known (yet).",
  anyOf: [needSchema, { type: "null" }],
} as const;
