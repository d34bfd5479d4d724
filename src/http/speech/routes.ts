// The six speech routes. Two belong to the compatible family, four are the gateway's own.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../family.ts";

/** Below the compatible family's prefix. */
export function audioRoutes(app: FastifyInstance): void {
  installFamily(app, "compat");
}

/** Voices and transcription models. */
export function speechRoutes(app: FastifyInstance): void {
  installFamily(app, "gateway");
}
