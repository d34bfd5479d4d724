// What is due when in virtual time, and what has happened so far.
import assert from "node:assert/strict";
import type { Effect, Event } from "../../../src/scheduler/state/events.ts";

export class Agenda {
  private readonly entries: { readonly at: number; readonly run: () => void }[] = [];

  private readonly calls = new Set<string>();

  add(at: number, run: () => void): void {
    let index = this.entries.length;
    while (index > 0 && (this.entries[index - 1]?.at ?? 0) > at) index--;
    this.entries.splice(index, 0, { at, run });
  }

  /** A call that the scheduler makes; one of a kind at a time. */
  addOnce(name: string, at: number, run: () => void): void {
    assert.ok(!this.calls.has(name), `no ${name} twice at once`);
    this.calls.add(name);
    this.add(at, () => {
      this.calls.delete(name);
      run();
    });
  }

  /** ms; when the first entry is due. */
  next(): number {
    return this.entries[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  run(): void {
    this.entries.shift()?.run();
  }
}

/** The newest events and effects, for the message of a failure. */
export class History {
  private readonly entries: (Event | Effect)[] = [];

  add(entry: Event | Effect): void {
    if (this.entries.length > 2_000) this.entries.splice(0, 1_000);
    this.entries.push(entry);
  }

  text(): string {
    const plain = (_key: string, value: unknown): unknown =>
      value instanceof Map ? [...(value as Map<string, unknown>)] : value;
    return this.entries
      .slice(-60)
      .map((entry) => JSON.stringify(entry, plain))
      .join("\n");
  }
}
