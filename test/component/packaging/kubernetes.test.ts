// docs/deploy/kubernetes: each overlay is valid by Kubernetes' own schemas, and its flags are flags of `serve`.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { Deployment, StatefulSet } from "kubernetes-models/apps/v1";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { Role, RoleBinding } from "kubernetes-models/rbac.authorization.k8s.io/v1";
import { ConfigMap, Service, ServiceAccount } from "kubernetes-models/v1";
import { parse, parseAllDocuments } from "yaml";
import { findOnPath } from "../../../src/engines/install/locate.ts";
import { kubernetesManifests } from "../../../src/packaging/kubernetes.ts";
import { stopSeconds } from "../../../src/packaging/setup.ts";
import { packageRoot, readSettings } from "../../../src/settings/settings.ts";
import { type Manifest, resolveOverlay } from "../../support/kustomize.ts";
import { readProjectFile } from "../../support/project-files.ts";
import { scratchFolder } from "../../support/scratch.ts";
import { setupWith } from "../../support/setup.ts";

const folder = "docs/deploy/kubernetes";
const overlays = ["base", "cpu", "nvidia", "llm-d"] as const;
const kinds = {
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  NetworkPolicy,
  PodDisruptionBudget,
  Role,
  RoleBinding,
  Service,
  ServiceAccount,
  StatefulSet,
};
const secretsDir = "/etc/model-gateway-secrets";

const setup = setupWith({
  account: null,
  licenseKeyFile: "license-key.txt",
  hubTokenFile: "hub-token.txt",
  flags: ["--stop-grace=60"],
  stopGraceMs: 60_000,
});

const setOf = (manifests: readonly Manifest[]): StatefulSet => {
  const found = manifests.find(({ kind }) => kind === "StatefulSet");
  assert.ok(found);
  return new StatefulSet(found);
};

test("the StatefulSet of the overlays is that of `package k8s`", () => {
  const document = "version: 1\nmodels:\n  - ggml-org/gemma-3-270m-it-GGUF:Q8_0\n";
  assert.equal(readProjectFile(`${folder}/base/gateway.yaml`), kubernetesManifests(setup, document));
});

for (const overlay of overlays)
  describe(`the overlay ${overlay}`, () => {
    const manifests = resolveOverlay(`${folder}/${overlay}`);

    test("is valid by Kubernetes' schemas, and what refers to a name finds it", () => {
      for (const { kind, apiVersion, ...rest } of manifests) {
        assert.ok(kind in kinds, kind);
        const made = new kinds[kind as keyof typeof kinds](rest as never);
        assert.equal(made.apiVersion, apiVersion);
        made.validate();
      }
      const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      assert.equal(new Set(names).size, names.length, names.join(", "));
      const set = setOf(manifests);
      assert.ok(names.includes(`Service ${set.spec?.serviceName}`));
      const pods = manifests.flatMap(
        ({ spec }) => (spec as { template?: { spec: Pod } } | undefined)?.template?.spec ?? [],
      );
      for (const { containers, volumes = [] } of pods) {
        for (const { configMap } of volumes) if (configMap) assert.ok(names.includes(`ConfigMap ${configMap.name}`));
        for (const { securityContext } of containers) assert.equal(securityContext?.readOnlyRootFilesystem, true);
      }
    });

    test("starts a gateway with flags that there are, and lets it end", async (t) => {
      const scratch = await scratchFolder(t);
      for (const name of ["license-key", "hub-token"]) await writeFile(join(scratch, name), "secret\n");
      const pod = setOf(manifests).spec?.template.spec;
      const args = pod?.containers[0]?.args ?? [];
      const { settings, command } = readSettings(
        args.map((arg) => arg.replace(secretsDir, scratch)),
        { HOME: scratch },
      );
      assert.equal(command, "serve");
      assert.deepEqual(
        [settings.writes, settings.hubMirror, settings.hubMirrorKey, settings.licenseKey, settings.hubToken],
        ["file", "http://model-gateway-0.model-gateway-replicas:8484/hub", "secret", "secret", "secret"],
      );
      assert.equal(settings.metricsNames, overlay === "llm-d" ? "vllm" : "gateway");
      assert.equal(pod?.terminationGracePeriodSeconds, stopSeconds(settings));
    });

    test("is what kustomize makes of it", async (t) => {
      const kubectl = await findOnPath("kubectl", process.env["PATH"] ?? "");
      if (kubectl === null) return t.diagnostic("no kubectl here: only the project's own resolver was used");
      const { stdout } = await promisify(execFile)(kubectl, ["kustomize", join(packageRoot, folder, overlay)]);
      const made = parseAllDocuments(stdout.replaceAll(/(model-gateway-(?:envoy|picker))-[a-z0-9]{10}\b/g, "$1"));
      const sorted = (list: readonly Manifest[]): readonly Manifest[] =>
        list.toSorted((a, b) => `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`));
      assert.deepEqual(sorted(made.map((document) => document.toJS() as Manifest)), sorted(manifests));
    });
  });

interface Pod {
  readonly containers: readonly { readonly securityContext?: { readonly readOnlyRootFilesystem?: boolean } }[];
  readonly volumes?: readonly { readonly configMap?: { readonly name: string } }[];
}

test("the GPU is asked for, and the engine is the one that was copied", () => {
  const pod = setOf(resolveOverlay(`${folder}/nvidia`)).spec?.template.spec;
  const [container] = pod?.containers ?? [];
  assert.equal(container?.resources?.limits?.["nvidia.com/gpu"], "1");
  const [mount] = pod?.initContainers?.[0]?.volumeMounts ?? [];
  assert.deepEqual(
    container?.env?.map(({ name, value }) => [name, value]),
    [
      ["LLAMA_SERVER", `${mount?.mountPath}/llama-server`],
      ["LD_LIBRARY_PATH", mount?.mountPath],
    ],
  );
});

interface Picker {
  readonly plugins: readonly { readonly type: string }[];
  readonly schedulingProfiles: readonly { readonly plugins: readonly { readonly pluginRef: string }[] }[];
  readonly dataLayer: { readonly discovery?: { readonly pluginRef: string } };
}

test("llm-d's router picks alike with and without Kubernetes, by plugins that it declares", () => {
  const read = (path: string): Picker => parse(readProjectFile(path)) as Picker;
  const { plugins, dataLayer, ...rest } = read("docs/deploy/llm-d/epp.yaml");
  const [discovery, ...others] = plugins;
  const { discovery: chosen, ...layer } = dataLayer;
  assert.deepEqual([discovery?.type, chosen?.pluginRef], ["file-discovery", "file-discovery"]);
  const cluster = read(`${folder}/llm-d/epp.yaml`);
  assert.deepEqual({ plugins: others, dataLayer: layer, ...rest }, cluster);
  const declared = cluster.plugins.map(({ type }) => type);
  for (const { pluginRef } of cluster.schedulingProfiles.flatMap((profile) => profile.plugins))
    assert.ok(declared.includes(pluginRef), pluginRef);
});
