// The scope that a license key needs on each route, as the table of operations declares it. Pure.
import type { Operation } from "../../../schemas/operations/operation.ts";
import type { KeyScope } from "../auth/key-list.ts";
import type { Prefixes } from "./openapi.ts";

/** A route that the table does not give to `chat` needs `all`. */
export function routeScopes(
  operations: readonly Operation[],
  prefixes: Prefixes,
): (methods: string | readonly string[], url: string) => KeyScope {
  const forChat = new Set(
    operations
      .filter(({ scope }) => scope === "chat")
      .flatMap(({ family, method, path }) => prefixes[family].map((prefix) => `${method} ${anonymous(prefix + path)}`)),
  );
  return (methods, url) => {
    const path = templateOf(url);
    const isForChat = [methods].flat().every((method) => forChat.has(`${method === "HEAD" ? "GET" : method} ${path}`));
    return isForChat ? "chat" : "all";
  };
}

/** A route's address as a template: `/v1/models/:id` and `/v1/models/*` are `/v1/models/{}`. */
export function templateOf(url: string): string {
  return anonymous(url.replace(/(?<=\/)(?:\*|:[^/]+)/g, "{}").replace(/(?<=.)\/$/, ""));
}

/** A template without the names of its parameters, so that two can be compared. */
export function anonymous(template: string): string {
  return template.replace(/\{[^}]*\}/g, "{}");
}
