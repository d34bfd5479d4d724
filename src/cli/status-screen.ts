// The status as a person reads it, on one screen: a summary, what needs attention, the models, the rest. Pure.
import type { StatusBody } from "../client/index.ts";
import { memoryText } from "../core/memory-text.ts";
import { amounts } from "../core/quantities.ts";
import { attentionIn, isStuck, isWrong, stateOf } from "../status/attention.ts";
import type { Color, Paint } from "./colors.ts";
import { ageText, bytesText, tableLines, wrapped } from "./text.ts";

type Condition = StatusBody["conditions"][number];
type Model = StatusBody["models"][number];

export interface ScreenOptions {
  /** ms */
  readonly now: number;
  readonly paint: Paint;
  /** Of the terminal; undefined: nothing is cut or wrapped. */
  readonly columns: number | undefined;
}

export function statusScreen(status: StatusBody, options: ScreenOptions): string[] {
  const sections = [
    summary(status, options),
    titled("Needs attention", attention(status, options), options),
    modelTable(status, options),
    titled("Under way", underWay(status, options), options),
    titled("Workers and speech", others(status, options), options),
    titled("Conditions", conditionLines(status.conditions, options), options),
  ];
  return sections
    .filter((section) => section.length > 0)
    .flatMap((section, index) => (index === 0 ? section : ["", ...section]));
}

function titled(title: string, lines: readonly string[], { paint }: ScreenOptions): string[] {
  return lines.length === 0 ? [] : [paint("bold", title), ...lines];
}

const healthColors: Readonly<Record<StatusBody["health"], Color>> = {
  Healthy: "green",
  Progressing: "yellow",
  Suspended: "yellow",
  Degraded: "red",
};

function summary(status: StatusBody, { now, paint, columns }: ScreenOptions): string[] {
  const { gateway, health, sync, generation, observedGeneration, applied, source, lastPass, router } = status;
  const observed = observedGeneration === generation ? "" : ` (${observedGeneration} observed)`;
  const first = `Model Gateway ${gateway.version}  ${paint(healthColors[health], health)}  ${paint(sync === "Synced" ? "green" : "yellow", sync)}`;
  const file = [
    ...(applied?.at ? [`applied ${ageText(applied.at, now)} ago by ${applied.by}`] : []),
    ...(applied?.sha256 ? [`sha256 ${applied.sha256.slice(0, 12)}`] : []),
    ...(applied?.revision ? [`revision ${applied.revision}`] : []),
  ];
  const engine = router.connected ? "router answers" : `router ${router.phase}`;
  return [
    `${first}  up ${ageText(gateway.startedAt, now)}`,
    cut(`Document    generation ${generation}${observed}${file.length > 0 ? `, ${file.join(", ")}` : ""}`, columns),
    cut(`File        ${source.path}`, columns),
    cut(`Last pass   ${lastPass === null ? "none yet" : `${ageText(lastPass, now)} ago`}, ${engine}`, columns),
  ];
}

function attention(status: StatusBody, options: ScreenOptions): string[] {
  return attentionIn(status).flatMap(({ subject, what, since, message }) => {
    if (since === null) return notice(`${what}: ${message}`, "yellow", options);
    const head = subject === "" ? what : `${subject} ${what}`;
    return notice(`${head} (${ageText(since, options.now)}): ${message}`, "red", options);
  });
}

function notice(text: string, color: Color, { paint, columns }: ScreenOptions): string[] {
  return wrapped(`! ${text}`, columns, "  ")
    .split("\n")
    .map((line) => paint(color, line));
}

const stateColors: Readonly<Record<string, Color>> = { loaded: "green", sleeping: "green", loading: "yellow" };

export function modelTable(
  { models, inFlight, waiting }: StatusBody,
  { now, paint, columns }: ScreenOptions,
): string[] {
  if (models.length === 0) return ["No models."];
  const rows = models.flatMap((model) => {
    const { runtime, variants = [] } = model;
    const waits = waiting.filter(({ model: id }) => id === model.id);
    const own = [
      model.id,
      runtime ? bytesText(runtime.bytes) : "–",
      String(runtime?.contextLength ?? "–"),
      stateOf(model),
      ageText(model.conditions.find(({ type }) => type === "Loaded")?.lastTransitionTime, now),
      String(inFlight[model.id] ?? 0),
      waits.map((wait) => `${wait.requests} for ${wait.for}, ${Math.round(wait.oldestMs / 1000)}s`).join("; ") || "0",
      memoryOf(model),
    ];
    return [own, ...variants.map((name) => [`  ${name}`, "", "", "variant"])];
  });
  const [head = "", ...lines] = tableLines([
    ["MODEL", "SIZE", "CONTEXT", "STATE", "SINCE", "IN FLIGHT", "WAITING", "MEMORY"],
    ...rows,
  ]);
  return [
    paint("bold", cut(head, columns)),
    ...lines.map((line, index) => paint(stateColors[rows[index]?.[3] ?? ""] ?? "dim", cut(line, columns))),
  ];
}

/** What its process has; of one without, what it needs. */
function memoryOf({ runtime }: Model): string {
  const bytes = runtime?.memoryBytes ?? null;
  if (bytes !== null) return memoryText(bytes);
  return runtime?.need ? `needs ${memoryText(runtime.need.bytes)}` : "–";
}

function underWay({ running, planned }: StatusBody, { now, columns }: ScreenOptions): string[] {
  const begun = running.map(({ message, progress, startedAt }) => {
    const since = startedAt === null ? "queued" : ageText(startedAt, now);
    return cut(`* ${message} (${since})${progress ? `: ${amounts(progress)}` : ""}`, columns);
  });
  const later = planned.filter((action) => !isStuck(action));
  return [...begun, ...later.map(({ message, because }) => cut(`- ${message}: ${because}`, columns))];
}

function others({ rpc, speech }: StatusBody, { columns }: ScreenOptions): string[] {
  const workers = rpc.workers.map(({ address, conditions }) => [
    address,
    conditions.map(({ reason }) => reason).join(", "),
  ]);
  const engines = Object.entries(speech).flatMap(([kind, engine]) =>
    engine ? [[kind, `${engine.choice}, ${engine.phase}, ${engine.inFlight} in flight`]] : [],
  );
  return tableLines([...workers, ...engines]).map((line) => cut(line, columns));
}

function conditionLines(conditions: readonly Condition[], { now, columns, paint }: ScreenOptions): string[] {
  const rows = conditions.map(({ type, status, reason, message, lastTransitionTime }) => [
    type,
    status,
    ageText(lastTransitionTime, now),
    `${reason}: ${message}`,
  ]);
  return tableLines(rows).map((line, index) => {
    const condition = conditions[index];
    return paint(condition && isWrong(condition) ? "red" : "dim", cut(line, columns));
  });
}

function cut(line: string, columns: number | undefined): string {
  return columns === undefined || line.length <= columns ? line : `${line.slice(0, columns - 1)}…`;
}
