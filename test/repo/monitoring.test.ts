// The alerts and the dashboard of docs/ ask for metrics, labels and values that a gateway has. test/http/metrics.test.ts has the names
// from a running one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Family, families, prefix } from "../../src/metrics/families.ts";
import { statusClasses } from "../../src/metrics/requests.ts";
import { actionKinds } from "../../src/plan/actions.ts";
import { conditionTable } from "../../src/status/condition-table.ts";
import { docPages } from "../support/doc-pages.ts";
import { alerts, dashboard, metricsIn, queries } from "../support/monitoring.ts";

const known = new Map<string, Family>(
  Object.entries<Family>(families).flatMap(([name, family]) =>
    (family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]).map(
      (suffix) => [`${prefix}${name}${suffix}`, family] as const,
    ),
  ),
);
/** Of Prometheus itself, and of the buckets. */
const everywhere = ["instance", "job", "le"];
const values: Readonly<Record<string, readonly string[]>> = {
  type: Object.keys(conditionTable),
  status: ["True", "False", "Unknown", ...statusClasses],
  outcome: ["succeeded", "failed", "cancelled"],
  kind: actionKinds,
  desired: ["true", "false"],
};

test("every metric that a query names exists, with its labels and their values", () => {
  assert.ok(queries.length > 40, `${queries.length} queries were found`);
  for (const [where, expr] of queries) {
    const named = metricsIn(expr);
    assert.ok(named.length > 0, `${where}: ${expr}`);
    for (const { name, labels } of named) {
      const family = known.get(name);
      assert.ok(family, `${where}: there is no ${name}`);
      for (const [label, value] of labels) {
        assert.ok([...family.labels, ...everywhere].includes(label), `${where}: ${name} has no label ${label}`);
        if (!value.startsWith("$")) assert.ok(values[label]?.includes(value) ?? true, `${where}: ${label}="${value}"`);
      }
    }
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
    const labels = named.flatMap(({ name }) => known.get(name)?.labels ?? []);
    for (const label of grouped) assert.ok([...labels, ...everywhere].includes(label), `${where}: by ${label}`);
  }
});

test("counters are asked for their growth, histograms for their buckets", () => {
  for (const [where, expr] of queries)
    for (const { name } of metricsIn(expr))
      if (known.get(name)?.type !== "gauge")
        assert.match(expr, new RegExp(`(?:rate|increase)\\(${name}(?:\\{[^}]*\\})?\\[`), `${where}: ${expr}`);
});

test("each alert has a severity, a summary and a description, and a name of its own", () => {
  assert.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length);
  for (const { alert, expr, labels, annotations } of alerts) {
    assert.match(alert, /^ModelGateway[A-Z]\w+$/);
    assert.ok(["critical", "warning"].includes(labels.severity), alert);
    assert.match(annotations["summary"] ?? "", /^.+\.$/, alert);
    assert.match(annotations["description"] ?? "", /^.+\.$/, alert);
    // A label that the query sums over is empty in the text.
    const [, kept] = /^\s*(?:histogram_quantile\([\d.]+,\s*)?(?:sum|max) by \(([^)]*)\)/.exec(expr) ?? [];
    const text = Object.values(annotations).join(" ");
    const used = [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label);
    const own = metricsIn(expr).flatMap(({ name }) => known.get(name)?.labels ?? []);
    const available = kept === undefined ? [...own, "instance"] : kept.split(/,\s*/);
    assert.deepEqual(
      used.filter((label) => !available.includes(label)),
      [],
      alert,
    );
  }
});

test("the share of errors is that of clients' requests: a probe every 5 s would hide failing chats, and its own 503 is none", () => {
  const { expr = "" } = alerts.find(({ alert }) => alert === "ModelGatewayErrors") ?? {};
  const families = metricsIn(expr).map(({ labels }) => new Map(labels).get("family"));
  assert.deepEqual(families, ["openai|ollama|llama", "openai|ollama|llama"]);
});

test("every alert that a page names exists", () => {
  const names = alerts.map(({ alert }) => alert);
  const named = [...docPages().values()].flatMap((text) => text.match(/\bModelGateway[A-Z]\w+/g) ?? []);
  assert.ok(named.length > 4, String(named));
  assert.deepEqual(
    named.filter((name) => !names.includes(name)),
    [],
  );
});

test("the panels of the dashboard have a place of their own", () => {
  const taken = new Set<string>();
  for (const { id, title, gridPos } of dashboard.panels) {
    assert.ok(gridPos.x + gridPos.w <= 24, title);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(!taken.has(`${x} ${y}`), `${title} lies over another panel`);
        taken.add(`${x} ${y}`);
      }
    assert.ok(id > 0);
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
});
