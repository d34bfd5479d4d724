// The alert file and the dashboard of docs/, as far as tests read them.
import { parse } from "yaml";
import { readProjectFile } from "./project-files.ts";

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
  readonly targets?: readonly { readonly expr: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

export const alerts = (
  parse(readProjectFile("docs/operations/alerts.yaml")) as {
    readonly groups: readonly { readonly rules: readonly Alert[] }[];
  }
).groups.flatMap(({ rules }) => rules);

export const dashboard = JSON.parse(readProjectFile("docs/operations/grafana.json")) as Dashboard;

/** Each query with where it stands. */
export const queries: readonly (readonly [where: string, expr: string])[] = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
  ...dashboard.templating.list.flatMap(({ name, definition }) =>
    definition === undefined ? [] : [[`$${name}`, definition] as const],
  ),
];

/** The metrics that a query names, with the labels and values that it asks of them. */
export function metricsIn(
  expr: string,
): readonly { readonly name: string; readonly labels: readonly (readonly [string, string])[] }[] {
  return [...expr.matchAll(/(model_gateway_\w+)(?:\{([^}]*)\})?/g)].map(([, name = "", selector = ""]) => ({
    name,
    labels: [...selector.matchAll(/(\w+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"/g)].map(
      ([, label = "", value = ""]) => [label, value] as const,
    ),
  }));
}
