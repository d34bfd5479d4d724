// What is shipped for several gateways without Kubernetes agrees: the compose file, HAProxy's and Envoy's configuration, the addresses.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { stopSeconds } from "../../../src/packaging/setup.ts";
import { packageRoot, readSettings } from "../../../src/settings/settings.ts";
import { composeProblems } from "../../support/compose.ts";
import { checkHaproxy } from "../../support/haproxy.ts";
import { readProjectFile } from "../../support/project-files.ts";
import { scratchFolder } from "../../support/scratch.ts";

const read = (path: string): unknown => parse(readProjectFile(path), { merge: true });

/** The gateways that HAProxy names. */
const servers = [...readProjectFile("docs/deploy/haproxy.cfg").matchAll(/^ {4}server (\S+) (\S+):8484$/gm)].map(
  ([, name = "", address = ""]) => ({ name, address, port: "8484" }),
);

test("HAProxy takes its configuration", async (t) => {
  t.diagnostic(await checkHaproxy(join(packageRoot, "docs", "deploy", "haproxy.cfg")));
});

interface Service {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly networks?: { readonly default: { readonly ipv4_address: string } };
  readonly ports?: readonly string[];
  readonly stop_grace_period?: string;
}

test("the cluster of compose is HAProxy and the gateways that it names, with flags that there are", async (t) => {
  const cluster = read("docs/deploy/compose-cluster.yaml") as { readonly services: Readonly<Record<string, Service>> };
  assert.equal(composeProblems(cluster), "");
  const { balancer, ...gateways } = cluster.services;
  assert.deepEqual(balancer?.ports, ["127.0.0.1:8480:8480"]);
  assert.deepEqual(
    Object.entries(gateways).map(([name, { networks }]) => ({
      name,
      address: networks?.default.ipv4_address,
      port: "8484",
    })),
    servers,
  );
  const scratch = await scratchFolder(t);
  await writeFile(join(scratch, "license-key"), "secret\n");
  const [first] = servers;
  for (const [name, { command = [], environment = {}, stop_grace_period: grace }] of Object.entries(gateways)) {
    const here = (text: string): string => text.replace("/run/secrets", scratch);
    const variables = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, here(value)]));
    const { settings } = readSettings(command.map(here), { HOME: scratch, ...variables });
    assert.deepEqual([settings.writes, settings.licenseKey], ["file", "secret"]);
    const mirror = name === first?.name ? [undefined, undefined] : [`http://${first?.address}:8484/hub`, "secret"];
    assert.deepEqual([settings.hubMirror, settings.hubMirrorKey], mirror);
    assert.equal(grace, `${stopSeconds(settings)}s`);
  }
});

interface Envoy {
  readonly static_resources: {
    readonly clusters: readonly {
      readonly name: string;
      readonly original_dst_lb_config?: { readonly http_header_name: string };
    }[];
  };
}

test("Envoy's routes and filters name clusters that there are, and no path leads to the metrics", () => {
  const text = readProjectFile("docs/deploy/llm-d/envoy.yaml");
  const { static_resources: resources } = read("docs/deploy/llm-d/envoy.yaml") as Envoy;
  const named = [...text.matchAll(/(?:cluster|cluster_name): ([a-z]+)\b/g)].map(([, name]) => name);
  const known = resources.clusters.map(({ name }) => name);
  assert.deepEqual([...new Set(named)].toSorted(), known.toSorted());
  const header =
    resources.clusters.find(({ name }) => name === "gateways")?.original_dst_lb_config?.http_header_name ?? "";
  assert.ok(text.includes(`remove: ${header}`), "a client could name any address");
  const [, flags = "", pattern = ""] = /regex: "\(\?(\w+)\)(.*)"/.exec(text) ?? [];
  const closed = new RegExp(`^(?:${pattern})$`, flags);
  for (const path of ["/metrics", "/k/KEY/metrics", "/METRICS", "/%6detrics", "/k/KEY%2Fmetrics", "/metric%73"])
    assert.match(path, closed);
  for (const path of ["/v1/chat/completions", "/v1/models/acme%2Fa%3AQ8_0", "/api/chat", "/readyz"])
    assert.doesNotMatch(path, closed);
});

test("llm-d's router reads the same addresses", () => {
  const { endpoints } = read("docs/deploy/llm-d/endpoints.yaml") as { readonly endpoints: readonly unknown[] };
  assert.deepEqual(endpoints, servers);
});
