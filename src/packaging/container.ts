// What the gateway's image has where, and how it is started: for compose and Kubernetes. docs/deploy/Dockerfile has the same paths.
import type { Setup } from "./setup.ts";

export const inImage = {
  stateDir: "/var/lib/model-gateway",
  cacheDir: "/var/lib/model-gateway/hub",
  configDir: "/etc/model-gateway",
  /** Of the account that it runs as. */
  uid: 1000,
  workerPort: 50_052,
} as const;

export const image = ({ version }: Pick<Setup, "version">): string => `model-gateway:${version}`;

/** `secretsDir`: where the secrets are mounted as files. */
export function serveInContainer(
  { port, flags, licenseKeyFile, hubTokenFile }: Setup,
  secretsDir: string,
): readonly string[] {
  return [
    "serve",
    "--host=0.0.0.0",
    `--port=${port}`,
    ...(licenseKeyFile === null ? [] : [`--license-key-file=${secretsDir}/license-key`]),
    ...(hubTokenFile === null ? [] : [`--hub-token-file=${secretsDir}/hub-token`]),
    ...flags,
  ];
}
