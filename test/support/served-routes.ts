// The routes that a gateway really serves, as Fastify learns of them.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { FastifyContextConfig, FastifyInstance } from "fastify";
import { cleanUp } from "./clean-up.ts";

export interface ServedRoute {
  readonly method: string;
  /** Parameters as OpenAPI writes them: `/v1/models/{}`. */
  readonly path: string;
  readonly licenseKey: "required" | "short" | "none";
}

/** Call it before the gateway starts; the list is whole once it has. */
export function watchRoutes(t: { after(fn: () => Promise<void>): void }): ServedRoute[] {
  const routes: ServedRoute[] = [];
  const onCreated = (message: unknown): void => {
    const { fastify } = message as { readonly fastify: FastifyInstance };
    fastify.addHook("onRoute", ({ method, url, config }) => {
      for (const each of [method].flat()) {
        routes.push({ method: each, path: templateOf(url), licenseKey: keyOf(config?.licenseKey) });
      }
    });
  };
  subscribe("fastify.initialization", onCreated);
  cleanUp(t, () => unsubscribe("fastify.initialization", onCreated));
  return routes;
}

/** An open network is none that the tests set. */
function keyOf(licenseKey: FastifyContextConfig["licenseKey"] = "network"): ServedRoute["licenseKey"] {
  return licenseKey === "network" ? "required" : licenseKey;
}

/** A route's address as a template: `/v1/models/:id` and `/v1/models/*` are `/v1/models/{}`. */
function templateOf(url: string): string {
  return anonymous(url.replace(/(?<=\/)(?:\*|:[^/]+)/g, "{}").replace(/(?<=.)\/$/, ""));
}

/** A template without the names of its parameters, so that two can be compared. */
export function anonymous(template: string): string {
  return template.replace(/\{[^}]*\}/g, "{}");
}
