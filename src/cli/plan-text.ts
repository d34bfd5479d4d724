// A plan as lines for people. Pure.
import type { PlanBody } from "../client/index.ts";
import { followedBy } from "../core/errors.ts";
import { memoryText } from "../core/memory-text.ts";
import type { Color, Paint } from "./colors.ts";
import { bytesText } from "./text.ts";

type Step = PlanBody["steps"][number];

const signs = { "+": "green", "~": "yellow", "-": "red", "*": "bold" } as const satisfies Record<string, Color>;

export function planLines(plan: PlanBody, paint: Paint): string[] {
  const { steps, running, remaining, problems, unmanaged, spared, complete, hub } = plan;
  const asSteps = new Set(steps.flatMap(({ key, when }) => (when === "running" ? key : [])));
  // What is under way and no step: it runs for another document than the one that is planned.
  const others = running.filter(({ key }) => !asSteps.has(key));
  const listed = [...[...running, ...steps, ...remaining].map(({ model }) => model), ...spared];
  return [
    ...others.map(({ kind, message, reason }) => paint("bold", `* ${kind}: ${message} (${reason}, under way)`)),
    ...steps.flatMap((step) => stepLines(step, paint)),
    ...remaining.map(
      ({ kind, message, because, until }) =>
        `= ${kind}: ${message} (held${until === null ? "" : ` until ${until}`}: ${because})`,
    ),
    ...problems.map(({ subject, message, hint }) =>
      paint("red", `! ${subject}: ${hint === undefined ? message : followedBy(message, hint)}`),
    ),
    ...(complete ? [] : ["  what comes then is not known: run this again once these steps are done"]),
    ...unansweredLines(hub),
    ...unmanaged
      .filter((id) => !listed.includes(id))
      .map((id) => `  ${id} is in the cache and not in the document: unmanaged`),
    ...spared.map(
      (id) =>
        `  ${id} left the document when its list of models was emptied; prune leaves it unless allowEmpty is true`,
    ),
    ...memoryLines(plan),
    isEmpty(plan) ? "Nothing to do." : paint("bold", totalsLine(plan)),
  ];
}

function memoryLines({ memory }: PlanBody): string[] {
  if (!memory || memory.changes.length === 0) return [];
  const lines = memory.changes.map(({ model, from, to, why, fits, onHub }) => {
    const was = from === null || from === to ? "" : ` (now ${memoryText(from)})`;
    const needed = to === null ? `an unknown amount of memory: ${why}` : memoryText(to);
    const by = to !== null && onHub ? " by the head of its file on the hub" : "";
    return `  ${model} needs ${needed}${by}${was}${fits === false ? ", and does not fit" : ""}`;
  });
  const limits = Object.entries(memory.limits).map(([device, bytes]) => `${memoryText(bytes)} of ${device}`);
  const unknown = memory.unknown === 0 ? "" : ` and ${memory.unknown} of unknown need`;
  return [
    ...lines,
    `  all models together: ${memoryText(memory.bytes)}${unknown}, where they may take ${limits.join(", ")}`,
  ];
}

export function isEmpty({ steps, running, remaining, problems }: PlanBody): boolean {
  return steps.length + running.length + remaining.length + problems.length === 0;
}

function stepLines(step: Step, paint: Paint): string[] {
  const sign = signOf(step);
  const { kind, message, reason, bytes, notBefore, awaits, ends, changes } = step;
  const size = bytes === null ? "" : `, ${bytesText(bytes)}`;
  const when = [
    reason,
    ...(step.when === "running" ? ["under way"] : []),
    ...(notBefore === null ? [] : [`not before ${notBefore}`]),
    ...(awaits === null ? [] : [`waits: ${awaits}`]),
  ];
  return [
    paint(signs[sign], `${sign} ${kind}: ${message}${size} (${when.join(", ")})`),
    ...changes.map(({ subject, field, from, to }) => `    ${subject} ${field}: ${from ?? "none"} → ${to ?? "none"}`),
    ...ends.map(
      ({ model, inFlight, memoryBytes }) =>
        `    ends the instance of ${model}${heldText(memoryBytes)}${inFlightText(inFlight)}`,
    ),
  ];
}

function heldText(bytes: number | null): string {
  return bytes === null ? "" : ` (${memoryText(bytes)} of memory)`;
}

function inFlightText(count: number): string {
  return count === 0
    ? ""
    : `, awaits ${count} ${count === 1 ? "response" : "responses"} in flight until --drain-timeout`;
}

function signOf({ kind, when }: Step): keyof typeof signs {
  if (when === "running") return "*";
  if (kind === "model.remove" || kind === "speech.stop") return "-";
  return kind === "preset.write" || kind === "router.reload" || kind === "router.restart" ? "~" : "+";
}

/** Each cause once: a hub that cannot be reached answers nothing. */
function unansweredLines({ asked, unanswered }: PlanBody["hub"]): string[] {
  if (!asked) return [];
  return [...new Set(unanswered.map(({ why }) => why))].map((why) => `  sizes are not all known: ${why}`);
}

function totalsLine({ totals, running }: PlanBody): string {
  const { pull, reload, inFlight, routerStarts, held, problems } = totals;
  const parts = [
    sumText(pull, "to pull"),
    sumText(totals.import, "to import"),
    routerStarts > 0 ? `${routerStarts} ${routerStarts === 1 ? "start" : "starts"} of the router` : "",
    countText(reload, `to reload${inFlight > 0 ? ` (${inFlight} in flight)` : ""}`),
    sumText(totals.delete, "to delete"),
    countText(running.length, "under way"),
    countText(held, "held"),
    countText(problems, "that cannot be done"),
  ].filter((part) => part !== "");
  return `Plan: ${[`${totals.steps} ${totals.steps === 1 ? "step" : "steps"}`, ...parts].join(", ")}.`;
}

function countText(count: number, what: string): string {
  return count === 0 ? "" : `${count} ${what}`;
}

function sumText({ count, bytes, unknown }: PlanBody["totals"]["pull"], what: string): string {
  const size =
    bytes === 0
      ? ""
      : unknown === 0
        ? ` (${bytesText(bytes)})`
        : ` (${bytesText(bytes)} and ${unknown} of unknown size)`;
  return countText(count, `${what}${size}`);
}
