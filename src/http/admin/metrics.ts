// How busy the gateway is, in the text form that Prometheus reads.
import { ok, textSchema } from "../../../schemas/route.ts";
import type { StatusReport } from "../../status/report.ts";
import { type Route, route } from "../server/route.ts";

type Labels = Readonly<Record<string, string>>;

interface MetricsDeps {
  readonly status: () => StatusReport;
}

export const metricsRoute: Route<MetricsDeps> = route({
  method: "GET",
  url: "/metrics",
  schema: {
    operationId: "metrics",
    summary: "Get metrics for Prometheus",
    response: ok("Gauges.", { content: { "text/plain": { schema: textSchema } } }),
  },
  handler: ({ status }: MetricsDeps, _request, reply) =>
    reply.type("text/plain; version=0.0.4; charset=utf-8").send(metricsText(status())),
});

export function metricsText({ gateway, router, inFlight, waiting, speech }: StatusReport): string {
  return [
    gauge("model_gateway_ready", "Whether chats can be served and nothing is stuck.", [[{}, gateway.ready ? 1 : 0]]),
    gauge("model_gateway_router_connected", "Whether the router answers.", [[{}, router.connected ? 1 : 0]]),
    gauge(
      "model_gateway_requests_in_flight",
      "Answers under way.",
      Object.entries(inFlight).map(([model, count]) => [{ model }, count]),
    ),
    gauge(
      "model_gateway_requests_waiting",
      "Requests that wait, by what they wait for.",
      waiting.map((entry) => [{ model: entry.model, for: entry.for }, entry.requests]),
    ),
    gauge(
      "model_gateway_oldest_wait_seconds",
      "How long the oldest of them has waited, in seconds.",
      waiting.map((entry) => [{ model: entry.model, for: entry.for }, entry.oldestMs / 1000]),
    ),
    gauge(
      "model_gateway_speech_requests",
      "Speech requests, running and queued.",
      Object.entries(speech).flatMap(([engine, report]) => (report ? [[{ engine }, report.inFlight]] : [])),
    ),
  ].join("");
}

function gauge(name: string, help: string, values: readonly (readonly [Labels, number])[]): string {
  const lines = values.map(([labels, value]) => `${name}${labelText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([key, value]) => `${key}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
