// A compose file: the gateway, and a worker for its RPC mode in a profile of its own.
import { image, inImage, serveInContainer } from "./container.ts";
import { isWithin, type Setup, stopSeconds } from "./setup.ts";

/** Folders that are no paths are volumes of compose's own. */
export function composeFile(setup: Setup): string {
  const { account, host, port, stateDir, cacheDir, configPath, writesBack, licenseKeyFile, hubTokenFile } = setup;
  const isOutside = configPath.startsWith("/") && !isWithin(stateDir, configPath);
  const [, folder = "", file = ""] = /^(.*)\/([^/]*)$/.exec(configPath) ?? [];
  const serve = [
    ...serveInContainer(setup, "/run/secrets"),
    ...(isOutside ? [`--config=${inImage.configDir}/${file}`] : []),
  ];
  const mounts = [
    `${stateDir}:${inImage.stateDir}`,
    `${cacheDir}:${inImage.cacheDir}`,
    // The folder: a file that is replaced would stay the old one.
    ...(isOutside ? [`${folder}:${inImage.configDir}${writesBack ? "" : ":ro"}`] : []),
  ];
  const secrets = Object.entries({ "license-key": licenseKeyFile, "hub-token": hubTokenFile }).flatMap(
    ([name, path]) => (path === null ? [] : [{ name, path }]),
  );
  const volumes = [stateDir, cacheDir].filter((source) => !source.startsWith("/"));
  const { uid, gid } = account ?? { uid: inImage.uid, gid: inImage.uid };
  return `# docker build -f docs/deploy/Dockerfile -t ${image(setup)} . makes the image, in a checkout; then: docker compose up -d${
    licenseKeyFile === null ? "\n# It needs a license key: docker compose run --rm gateway key create NAME" : ""
  }

x-service: &service
  image: ${image(setup)}
  user: "${uid}:${gid}"
  restart: unless-stopped
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]

services:
  gateway:
    <<: *service
    command:${list(serve)}
    ports: ["${hostPart(host)}${port}:${port}"]
    environment:${list(Object.entries({ GATEWAY_PORT: String(port), ...setup.variables }).map(([name, value]) => `${name}=${value}`))}
    volumes:${list(mounts)}
    tmpfs: [/tmp]
${secrets.length > 0 ? `    secrets: [${secrets.map(({ name }) => name).join(", ")}]\n` : ""}    stop_grace_period: ${stopSeconds(setup)}s

  # docker compose --profile worker up -d, and in the document: rpc: { mode: rpc, workers: ["worker:${inImage.workerPort}"] }
  worker:
    <<: *service
    profiles: [worker]
    command: [worker, --host=0.0.0.0, --port=${inImage.workerPort}]
    healthcheck: { disable: true }
    tmpfs: [/tmp, ${inImage.stateDir}]
${secrets.length > 0 ? `\nsecrets:\n${secrets.map(({ name, path }) => `  ${name}: { file: ${JSON.stringify(path)} }\n`).join("")}` : ""}${
  volumes.length > 0 ? `\nvolumes:\n${volumes.map((name) => `  ${name}: {}\n`).join("")}` : ""
}`;
}

/** Docker publishes on every address if none is named. */
function hostPart(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "";
  const address = host === "localhost" ? "127.0.0.1" : host;
  return `${address.includes(":") && !address.startsWith("[") ? `[${address}]` : address}:`;
}

/** compose replaces $NAME. */
function list(texts: readonly string[]): string {
  return texts.map((text) => `\n      - ${JSON.stringify(text.replaceAll("$", "$$$$"))}`).join("");
}
