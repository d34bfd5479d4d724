// The types of what the gateway's own routes on models, workers and the hub answer with, for those who call them.
import type { FromSchema } from "json-schema-to-ts";
import type {
  contextSizeSetSchema,
  ejectedSchema,
  hubFilesSchema,
  hubReposSchema,
  removedSchema,
  rpcRosterSchema,
} from "./admin.ts";

export type ContextSizeSet = FromSchema<typeof contextSizeSetSchema>;
export type Ejected = FromSchema<typeof ejectedSchema>;
export type Removed = FromSchema<typeof removedSchema>;
export type RpcRoster = FromSchema<typeof rpcRosterSchema>;
export type HubRepos = FromSchema<typeof hubReposSchema>;
export type HubFiles = FromSchema<typeof hubFilesSchema>;
