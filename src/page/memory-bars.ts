// What takes each device's memory, and what a load would change of it. Pure.
import type { StatusBody } from "../client/index.ts";
import { memoryText } from "../core/memory-text.ts";
import type { Model } from "./model-row.ts";

/** `leaving`: unloaded for the load that is previewed, whose own part is `coming`. */
export type PartKind = "others" | "model" | "leaving" | "coming" | "free" | "kept";

export interface Part {
  readonly kind: PartKind;
  readonly label: string;
  readonly bytes: number;
}

export interface Bar {
  readonly device: string;
  readonly totalBytes: number;
  readonly parts: readonly Part[];
}

/** A bar per device; `previewed`: the id of a model that is not loaded, shown as if it were loaded next. */
export function memoryBars({ memory, models }: StatusBody, previewed: string | null): Bar[] {
  const preview = models.find(({ id }) => id === previewed);
  const leaving = preview?.runtime?.evicts ?? [];
  return memory.devices.map(({ name, totalBytes, othersBytes, limitBytes }) => {
    const held = models.flatMap((model): Part[] => {
      const bytes = model.runtime?.takes?.[name] ?? 0;
      return bytes > 0 ? [{ kind: leaving.includes(model.id) ? "leaving" : "model", label: model.id, bytes }] : [];
    });
    const coming = Math.max(0, needOn(preview, name) - sumOf(held.filter(({ kind }) => kind === "leaving")));
    const free = Math.max(0, limitBytes - sumOf(held));
    const kept = Math.max(0, totalBytes - othersBytes - limitBytes);
    const parts: Part[] = [
      { kind: "others", label: "Other programs", bytes: othersBytes },
      ...held,
      { kind: "coming", label: preview?.id ?? "", bytes: Math.min(coming, free) },
      { kind: "free", label: "Free for models", bytes: Math.max(0, free - coming) },
      { kind: "kept", label: "Kept free", bytes: kept },
    ];
    return {
      device: name === "Host" ? "Main memory" : name,
      totalBytes,
      parts: parts.filter(({ bytes }) => bytes > 0),
    };
  });
}

/** What the load of a model would do, in a sentence; null: it is loaded, or no model that can be. */
export function loadText({ id, runtime }: Model): string | null {
  if (!runtime || runtime.takes) return null;
  const { need, evicts } = runtime;
  if (!evicts) return `${id} does not fit beside the pinned models${need ? `: it takes ${needText(need)}` : ""}.`;
  const takes = need ? `takes ${needText(need)}` : "takes an amount of memory that is not known";
  if (evicts.length === 0) return `${id} ${takes}; no other model is unloaded for it.`;
  return `${id} ${takes}; unloaded for it: ${evicts.join(", ")}.`;
}

/** `66 MiB`, `about 66 MiB`, `–` */
export function takesText({ runtime }: Model): string {
  if (!runtime) return "–";
  const { takes, need } = runtime;
  const held = takes ? sumOf(Object.values(takes).map((bytes) => ({ bytes }))) : 0;
  if (held > 0) return memoryText(held);
  return need ? needText(need) : "–";
}

function needText({ bytes, source }: NonNullable<NonNullable<Model["runtime"]>["need"]>): string {
  return `${source === "estimated" ? "about " : ""}${memoryText(bytes)}`;
}

function needOn(model: Model | undefined, device: string): number {
  const need = model?.runtime?.takes ? null : model?.runtime?.need;
  return (need?.measured ?? need?.estimated)?.[device] ?? 0;
}

function sumOf(parts: readonly { readonly bytes: number }[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}
