// What the page shows, and how an event changes it. Pure.
import type { Desired, GatewayEvent, StatusBody } from "../client/index.ts";

export interface Live {
  /** null: not read yet. */
  readonly status: StatusBody | null;
  readonly desired: Desired | null;
  /** ISO 8601, by model. */
  readonly lastUsed: ReadonlyMap<string, string>;
  /** The newest first. */
  readonly activity: readonly Activity[];
  readonly isConnected: boolean;
}

export interface Activity {
  readonly id: string;
  readonly at: string;
  readonly text: string;
  readonly isFailure: boolean;
}

export const nothingYet: Live = { status: null, desired: null, lastUsed: new Map(), activity: [], isConnected: false };

const mostActivity = 40;

type Data = Readonly<Record<string, unknown>>;
type Running = StatusBody["running"][number];

/** `isStale`: the status is to be read again. */
export function afterEvent(
  live: Live,
  { id, type, data }: GatewayEvent,
): { readonly live: Live; readonly isStale: boolean } {
  const shown = activityOf(type, data);
  const entry = shown && { id, at: data.at, ...shown };
  const next = entry ? { ...live, activity: [entry, ...live.activity].slice(0, mostActivity) } : live;
  if (type === "requests") return { live: withRequests(next, data), isStale: false };
  const progressed = type === "action.progress" ? withProgress(next, data) : null;
  return progressed ? { live: progressed, isStale: false } : { live: next, isStale: true };
}

function withRequests(live: Live, { at, inFlight, waiting, used }: Data): Live {
  const lastUsed = new Map(live.lastUsed);
  for (const model of used as readonly string[]) lastUsed.set(model, at as string);
  if (!live.status) return { ...live, lastUsed };
  // How long the oldest has waited is not in the event, as it would differ in each.
  const waits = (waiting as StatusBody["waiting"]).map((wait) => ({ ...wait, oldestMs: 0 }));
  const status = { ...live.status, inFlight: inFlight as StatusBody["inFlight"], waiting: waits };
  return { ...live, status, lastUsed };
}

/** null: the action is not known yet. */
function withProgress(live: Live, { key, kind: _kind, at: _at, ...progress }: Data): Live | null {
  const { status } = live;
  if (!status?.running.some((action) => action.key === key)) return null;
  const running = status.running.map(
    (action): Running =>
      action.key === key ? { ...action, progress: progress as unknown as Running["progress"] } : action,
  );
  return { ...live, status: { ...status, running } };
}

/** A text or a number of an event. */
function valueText(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function activityOf(type: string, data: Data): Pick<Activity, "text" | "isFailure"> | null {
  const word = (name: string): string => valueText(data[name]);
  switch (type) {
    case "action.finished":
      return { text: word("message"), isFailure: false };
    case "action.failed":
      return { text: `${word("kind")} failed: ${word("message")}`, isFailure: data["code"] !== "cancelled" };
    case "document":
      return { text: `generation ${word("generation")} of the document`, isFailure: false };
    case "source":
      return data["valid"] === true
        ? null
        : { text: `gateway.yaml is not applied: ${word("message")}`, isFailure: true };
    case "drain":
      return { text: `${word("model")}: ${word("cut")} requests were cut by a change`, isFailure: true };
    case "model": {
      const { status } = (data["data"] ?? {}) as { readonly status?: unknown };
      const isEnd = status === "loaded" || status === "unloaded";
      return isEnd ? { text: `${word("model")} is ${status}`, isFailure: false } : null;
    }
    default:
      return null;
  }
}
