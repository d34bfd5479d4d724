// How busy the gateway is, in the text form that Prometheus reads. Pure.
import type { StatusReport } from "./report.ts";

type Labels = Readonly<Record<string, string>>;

export function metricsText({ gateway, router, inFlight, waiting, speech }: StatusReport): string {
  const speechEngines = Object.entries(speech).flatMap(([engine, report]) => (report ? [{ engine, report }] : []));
  return [
    gauge("ready", "Whether chats can be served and nothing is stuck.", [[{}, gateway.ready ? 1 : 0]]),
    gauge("router_connected", "Whether the router answers.", [[{}, router.connected ? 1 : 0]]),
    gauge(
      "requests_in_flight",
      "Answers under way.",
      Object.entries(inFlight).map(([model, count]) => [{ model }, count]),
    ),
    gauge(
      "requests_waiting",
      "Requests that wait, by what they wait for.",
      waiting.map((entry) => [{ model: entry.model, for: entry.for }, entry.requests]),
    ),
    gauge(
      "oldest_wait_seconds",
      "How long the oldest of them has waited, in seconds.",
      waiting.map((entry) => [{ model: entry.model, for: entry.for }, entry.oldestMs / 1000]),
    ),
    gauge(
      "speech_requests",
      "Speech requests, running and queued.",
      speechEngines.map(({ engine, report }) => [{ engine }, report.inFlight]),
    ),
  ].join("");
}

function gauge(word: string, help: string, values: readonly (readonly [Labels, number])[]): string {
  const name = `model_gateway_${word}`;
  const lines = values.map(([labels, value]) => `${name}${labelText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
}

/** Prometheus escapes backslash, quote and line feed in a label's value, as JSON does. */
function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
