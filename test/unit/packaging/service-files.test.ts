// Service files of compose, Kubernetes and launchd: each is valid by the schema or the parser of its format, and every value comes
// back as it was.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StatefulSet } from "kubernetes-models/apps/v1";
import { ConfigMap, Service } from "kubernetes-models/v1";
import { parse as parsePlist } from "plist";
import { parse, parseAllDocuments } from "yaml";
import { composeFile } from "../../../src/packaging/compose.ts";
import { inImage } from "../../../src/packaging/container.ts";
import { kubernetesManifests } from "../../../src/packaging/kubernetes.ts";
import { launchdAgent } from "../../../src/packaging/launchd.ts";
import { composeProblems } from "../../support/compose.ts";
import { readProjectFile } from "../../support/project-files.ts";
import { composeSetup, fullSetup, setupWith, special } from "../../support/setup.ts";

interface ComposeService {
  readonly command: readonly string[];
  readonly environment: readonly string[];
  readonly ports: readonly string[];
  readonly secrets?: readonly string[];
  readonly user: string;
  readonly volumes: readonly string[];
  readonly profiles?: readonly string[];
}

interface Compose {
  readonly services: { readonly gateway: ComposeService; readonly worker: ComposeService };
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes?: object;
}

function compose(text: string): Compose {
  const file = parse(text, { merge: true }) as Compose;
  assert.equal(composeProblems(file), "");
  return file;
}

describe("the compose file", () => {
  it("is that of docs/deploy, with volumes of its own", () => {
    assert.equal(composeFile(composeSetup), readProjectFile("docs/deploy/compose.yaml"));
    const { services, secrets, volumes } = compose(composeFile(composeSetup));
    assert.deepEqual(secrets, { "license-key": { file: "./license-key.txt" } });
    assert.deepEqual(Object.keys(volumes ?? {}), ["state", "models"]);
    assert.deepEqual(services.gateway.ports, ["127.0.0.1:8484:8484"]);
    assert.deepEqual(services.worker.profiles, ["worker"]);
    assert.equal(services.worker.user, `${inImage.uid}:${inImage.uid}`);
  });

  it("keeps every value, and takes no program of this machine", () => {
    const { services, secrets, volumes } = compose(composeFile(fullSetup));
    const kept = special.replaceAll("$", "$$$$");
    const { command, environment, volumes: mounts } = services.gateway;
    assert.deepEqual(command, [
      "serve",
      "--host=0.0.0.0",
      "--port=9000",
      "--license-key-file=/run/secrets/license-key",
      "--hub-token-file=/run/secrets/hub-token",
      `--preset-allow=${kept}`,
      "--keep-alive=5m",
      "--config=/etc/model-gateway/gateway.yaml",
    ]);
    assert.deepEqual(environment, ["GATEWAY_PORT=9000", `NO_PROXY=${kept}`]);
    assert.deepEqual(mounts, [
      `${kept}:${inImage.stateDir}`,
      `${kept}/hub:${inImage.cacheDir}`,
      "/etc/model gateway:/etc/model-gateway:ro",
    ]);
    assert.deepEqual(Object.keys(secrets ?? {}), services.gateway.secrets);
    assert.equal(volumes, undefined);
  });

  it("publishes the port where the gateway listens here", () => {
    const ports = (host: string): readonly string[] => compose(composeFile(setupWith({ host }))).services.gateway.ports;
    assert.deepEqual(ports("0.0.0.0"), ["8484:8484"]);
    assert.deepEqual(ports("192.168.1.20"), ["192.168.1.20:8484:8484"]);
    assert.deepEqual(ports("::1"), ["[::1]:8484:8484"]);
  });
});

describe("the manifests of Kubernetes", () => {
  const kinds = { ConfigMap, Service, StatefulSet };

  function manifests(text: string): [ConfigMap, Service, StatefulSet] {
    const found = parseAllDocuments(text).map((document) => {
      const { kind, ...rest } = document.toJS() as { kind: keyof typeof kinds };
      const made = new kinds[kind](rest);
      made.validate();
      return made;
    });
    return found as [ConfigMap, Service, StatefulSet];
  }

  it("run one gateway, not as root, with the document as a folder and secrets as files", () => {
    const document = "# one\nversion: 1\n\nmodels: []   # none\n";
    const [configMap, service, set] = manifests(kubernetesManifests(fullSetup, document));
    assert.deepEqual(configMap.data, { "gateway.yaml": document });
    assert.equal(service.spec?.ports?.[0]?.port, 9000);
    const pod = set.spec?.template.spec;
    const [container] = pod?.containers ?? [];
    assert.ok(pod && container);
    assert.equal(pod.securityContext?.runAsNonRoot, true);
    const kept = special.replaceAll("$", "$$$$");
    assert.deepEqual(container.args, [
      "serve",
      "--host=0.0.0.0",
      "--port=9000",
      "--license-key-file=/etc/model-gateway-secrets/license-key",
      "--hub-token-file=/etc/model-gateway-secrets/hub-token",
      `--preset-allow=${kept}`,
      "--keep-alive=5m",
      "--stop-delay=5",
      "--config=/etc/model-gateway/gateway.yaml",
      "--writes=file",
    ]);
    assert.deepEqual(container.env, [{ name: "NO_PROXY", value: kept }]);
    assert.deepEqual(
      [container.livenessProbe?.httpGet?.path, container.readinessProbe?.httpGet?.path],
      ["/livez", "/readyz"],
    );
    assert.ok(container.volumeMounts?.every(({ subPath }) => subPath === undefined));
    const claimed = set.spec?.volumeClaimTemplates?.map(({ metadata }) => metadata?.name);
    const volumes = [...(pod.volumes ?? []).map(({ name }) => name), ...(claimed ?? [])];
    assert.deepEqual(volumes.toSorted(), container.volumeMounts?.map(({ name }) => name).toSorted());
  });

  it("have no second writer of the document", () => {
    const setup = setupWith({ flags: ["--write-back=true", "--writes=all"] });
    const [, , set] = manifests(kubernetesManifests(setup, "version: 1\n"));
    const args = set.spec?.template.spec?.containers[0]?.args ?? [];
    assert.deepEqual(
      args.filter((arg) => arg.startsWith("--write")),
      ["--writes=file"],
    );
  });

  for (const document of [
    "  version: 1\n",
    "version: 1",
    "version: 1\n\n",
    "a: |+\n  b\n\nc: \u0085\r\n",
    "\tx\n",
    "---\nversion: 1\n...\n",
  ])
    it(`keep ${JSON.stringify(document)}`, () => {
      const [configMap] = manifests(kubernetesManifests(setupWith(), document));
      assert.equal(configMap.data?.["gateway.yaml"], document);
    });
});

describe("the agent of launchd", () => {
  it("keeps every value", () => {
    const agent = parsePlist(launchdAgent(fullSetup)) as Readonly<Record<string, unknown>>;
    assert.deepEqual(agent["ProgramArguments"], [
      process.execPath,
      "/opt/model-gateway/cli.js",
      "serve",
      "--host=127.0.0.1",
      "--port=9000",
      `--state=${special}`,
      "--config=/etc/model gateway/gateway.yaml",
      "--log=json",
      `--llama-server=${special}`,
      `--preset-allow=${special}`,
      "--keep-alive=5m",
    ]);
    const { PATH: _, ...environment } = agent["EnvironmentVariables"] as Record<string, string>;
    assert.deepEqual(environment, {
      HF_HUB_CACHE: `${special}/hub`,
      NO_PROXY: special,
      GATEWAY_LICENSE_KEY_FILE: "/etc/keys/license-key",
      GATEWAY_HUB_TOKEN_FILE: "/etc/keys/hub-token",
    });
    assert.deepEqual(
      [agent["RunAtLoad"], agent["KeepAlive"], agent["ExitTimeOut"]],
      [true, { SuccessfulExit: false }, 45],
    );
  });
});
