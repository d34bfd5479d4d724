// What is due when in virtual time, and what has happened so far.
import assert from "node:assert/strict";
import type { Effect, Event } from "../../../src/scheduler/state/events.ts";

class Agenda {
  private readonly entries: { readonly at: number; readonly run: () => void }[] = [];

  private readonly calls = new Set<string>();

  add(at: number, run: () => void): void {
    let index = this.entries.length;
    while (index > 0 && (this.entries[index - 1]?.at ?? 0) > at) index--;
    this.entries.splice(index, 0, { at, run });
  }

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

/** Time that passes from one thing that is due to the next. */
export abstract class Clock {
  time = 1_000_000;
  private readonly agenda = new Agenda();
  private lastStep = 1_000_000;

  /** ms; when `tick` is due. */
  protected abstract dueAt(): number;
  protected abstract tick(): void;
  protected abstract passed(ms: number): void;

  after(ms: number, run: () => void): void {
    this.agenda.add(this.time + ms, run);
  }

  /** A call that the scheduler makes; one of a kind at a time. */
  protected call(name: string, ms: number, run: () => void): void {
    this.agenda.addOnce(name, this.time + ms, run);
  }

  /** Runs until this much time has passed. */
  run(ms: number): void {
    const end = this.time + ms;
    while (this.step(end));
    this.moveTo(end);
  }

  /** Runs until `isOver`, or for the whole time. */
  runUntil(isOver: () => boolean, ms: number): void {
    const end = this.time + ms;
    while (!isOver() && this.step(end));
  }

  private step(end: number): boolean {
    const next = this.agenda.next();
    if (Math.min(next, this.dueAt()) > end) return false;
    if (next <= this.dueAt()) {
      this.moveTo(next);
      this.agenda.run();
    } else {
      this.moveTo(this.dueAt());
      this.tick();
    }
    return true;
  }

  private moveTo(time: number): void {
    this.passed(time - this.lastStep);
    this.lastStep = time;
    this.time = Math.max(this.time, time);
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
