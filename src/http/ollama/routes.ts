// The family wire-compatible with Ollama's API: which routes there are, and which of Ollama's there will not be.

import type { FastifyInstance } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import { installFamily } from "../server/family.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { embeddingRoutes } from "./embedding.ts";
import { generationRoutes } from "./generation.ts";
import { libraryRoutes } from "./library.ts";
import { pullRoutes } from "./pulling.ts";

export type { NativeRoutesDeps } from "./deps.ts";

/** The version of Ollama's API that is spoken here; clients refuse to talk to one below 0.6.4. */
const apiVersion = "0.20.0";

/** `zeroEjects`: `keep_alive: 0` unloads and answers nothing, whatever else the body has, as the interface has it. */
export function nativeRoutes(app: FastifyInstance, deps: NativeRoutesDeps, zeroEjects: boolean): void {
  installFamily(app, "native");
  generationRoutes(app, deps, zeroEjects);
  embeddingRoutes(app, deps);
  libraryRoutes(app, deps);
  pullRoutes(app, deps);
  app.get("/version", () => ({ version: apiVersion }));
  for (const { method, url, why } of absent) {
    app.route({
      method: [...method],
      url,
      handler: () => {
        throw new GatewayError("not_supported", why);
      },
    });
  }
}

const noMaking = "models are not made here: name one of the hub in gateway.yaml, or pull it";
const noAccount = "this gateway has no cloud account";

/** Routes of Ollama's that are answered by a plain no rather than by "not found", which clients take for an old server. */
const absent = [
  { method: ["POST"], url: "/create", why: noMaking },
  { method: ["POST", "HEAD"], url: "/blobs/:digest", why: noMaking },
  { method: ["POST"], url: "/push", why: "models are not pushed from here" },
  { method: ["GET"], url: "/status", why: noAccount },
  { method: ["POST"], url: "/me", why: noAccount },
  { method: ["POST"], url: "/signout", why: noAccount },
  { method: ["DELETE"], url: "/user/keys/:key", why: noAccount },
  { method: ["POST"], url: "/experimental/*", why: noAccount },
] as const;
