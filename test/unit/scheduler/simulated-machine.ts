// A router, its clients and changes in virtual time, around the scheduler's state: loads take time, fail, stall and are lost, and
// so are events. Checks the safety properties at every step.
import assert from "node:assert/strict";
import type { GatewayError } from "../../../src/core/errors.ts";
import { decide } from "../../../src/scheduler/state/decide.ts";
import type { Effect, Event, Ticket } from "../../../src/scheduler/state/events.ts";
import { State } from "../../../src/scheduler/state/state.ts";
import type { Limits, Loaded } from "../../../src/scheduler/state/world.ts";
import {
  brokenLoad,
  brokenOff,
  type Change,
  type Client,
  type EventBody,
  type LoadOutcome,
  limits,
  type Process,
  refused,
  tokenOf,
  worldOf,
} from "./machine-parts.ts";
import { Settings } from "./machine-settings.ts";
import { covers, requireLimits, requireSafeGrant, requireSafeLoad, requireSafeUnload } from "./safety.ts";
import { History } from "./virtual-time.ts";

/** What is loaded, asked for and changed; every member may be set while it runs. */
export class Machine extends Settings {
  readonly state: State;
  /** The workers are reserved for a load. */
  isReserved = false;
  /** What the router has read. */
  file = 1;
  isBehind = false;
  readonly processes = new Map<string, Process>();
  readonly clients: Client[] = [];
  /** Those that wait or have an answer in flight. */
  readonly active = new Set<Client>();
  readonly changes = new Map<number, Change>();
  /** The newest events and effects, for the message of a failure. */
  readonly log = new History();
  /** Loads begun, in order. */
  readonly loads: string[] = [];
  /** Answers that drains have cut. */
  cuts = 0;
  /** A client has its answer, or its rejection. */
  onSettled: (client: Client) => void = () => undefined;
  onLoad: (id: string) => void = () => undefined;
  /** ms in which some answer was in flight. */
  answering = 0;
  /** Delivers each event twice: the second time nothing may be left to do. */
  isDoubled = false;

  readonly loaded = new Map<string, Loaded>();
  /** Models whose unload was asked for. */
  readonly requested = new Set<string>();
  private numbers = 0;
  private origins = 0;
  private drains = 0;

  constructor(ids: readonly string[], changed: Partial<Limits> = {}) {
    super();
    this.state = new State({ ...limits, ...changed });
    for (const id of ids) {
      this.listed.add(id);
      this.cached.add(id);
    }
    this.observe();
  }

  ask(id: string, answerMs: number, elsewhereMs = 0): Client {
    const ticket = { number: ++this.numbers, id, since: this.time, queuedAt: this.time };
    const client: Client = { ticket, answerMs, state: "waits", error: null };
    this.clients.push(client);
    this.active.add(client);
    if (elsewhereMs === 0) this.send({ kind: "request", ticket });
    else {
      client.state = "elsewhere";
      this.send({ kind: "enter", ticket, reason: "size" });
      this.after(elsewhereMs, () => {
        if (client.state !== "elsewhere") return;
        client.state = "waits";
        this.send({ kind: "request", ticket });
      });
    }
    return client;
  }

  leave(client: Client | undefined): void {
    if (client?.state === "answers") return this.endAnswer(client, "left");
    if (client?.state !== "waits" && client?.state !== "elsewhere") return;
    client.state = "left";
    this.active.delete(client);
    this.send({ kind: "left", ticket: client.ticket });
  }

  crash(id: string): void {
    if (this.processes.delete(id)) this.notice();
  }

  stopRouter(): void {
    this.processes.clear();
    this.silenceRouter();
  }

  /** It does not answer, and its models do. */
  silenceRouter(isReady = false): void {
    this.isReady = isReady;
    this.observe();
  }

  startRouter(): void {
    this.silenceRouter(true);
  }

  /** A change that drains the models, ends their processes, and lets requests in again. */
  change(models: readonly string[] | "all"): number {
    const drain = ++this.drains;
    this.changes.set(drain, { models, isDrained: false });
    this.send({ kind: "drainBegan", drain, models });
    return drain;
  }

  giveUpChange(): void {
    const [found] = [...this.changes].find(([, { isDrained }]) => !isDrained) ?? [];
    if (found !== undefined) this.endChange(found);
  }

  /** Another program has the router load it. */
  loadElsewhere(id: string): void {
    if (!this.isReady || !this.listed.has(id) || this.processes.has(id)) return;
    this.processes.set(id, { value: "loaded", origin: `o${++this.origins}`, hasGivenToken: false, isForeign: true });
    this.notice();
  }

  unload(id: string): void {
    this.requested.add(id);
    this.send({ kind: "unload", id });
  }

  send(body: EventBody): void {
    const event = { ...body, now: this.time } as Event;
    this.log.add(event);
    for (const effect of decide(this.state, event)) this.apply(effect);
    // Beside more models than there are slots, as another program may load them, one more may leave with the next event.
    if (this.isDoubled && this.processes.size <= this.slots) {
      const left = decide(this.state, { kind: "tick", now: this.time });
      assert.deepEqual(left, [], `nothing is left to do after ${event.kind}`);
    }
    requireLimits(this);
  }

  /** The newest events and effects, for the message of a failure. */
  history(): string {
    return this.log.text();
  }

  protected dueAt(): number {
    return this.state.wakeAt;
  }

  protected tick(): void {
    this.send({ kind: "tick" });
    assert.ok(this.state.wakeAt > this.time, "an event is asked for in the future");
  }

  protected passed(ms: number): void {
    if ([...this.active].some(({ state }) => state === "answers")) this.answering += ms;
  }

  // The router.

  /** The router says that something is another; a deaf gateway does not hear it. */
  private notice(): void {
    if (!this.isDeaf) this.observe();
  }

  observe(): void {
    this.loaded.clear();
    for (const [id, { value, origin }] of this.processes)
      if (value === "loaded") this.loaded.set(id, { origin, slots: this.parallel });
    this.send({ kind: "observed", world: worldOf(this) });
  }

  private apply(effect: Effect): void {
    this.log.add(effect);
    switch (effect.kind) {
      case "grant":
        return this.granted(effect.ticket);
      case "reject":
        return this.rejected(effect.ticket, effect.error);
      case "checkWorkers":
        assert.ok(!this.isReserved, "workers are reserved for one load");
        return this.call("checkWorkers", 5, () => {
          this.isReserved = this.verdict.kind === "ready";
          this.send({ kind: "workersChecked", verdict: this.verdict });
        });
      case "releaseWorkers":
        assert.ok(this.isReserved, "workers are released once");
        return void (this.isReserved = false);
      case "load":
        return this.load(effect.id);
      case "explainEnd":
        return this.call("explainEnd", 1, () =>
          this.send({ ...brokenLoad, ...this.end, isShort: this.outcome === "short" }),
        );
      case "askToken":
        return this.askToken(effect.id);
      case "unload":
        return this.unloading(effect.id);
      case "unloaded":
        return void this.requested.delete(effect.id);
      case "cut":
        return this.cut(effect.id);
      case "drained":
        for (const count of effect.cut.values()) this.cuts += count;
        return this.drained(effect.drain);
      case "readList":
        return this.after(5, () => this.observe());
      case "fallBack":
        assert.ok(this.fallbacks.delete(effect.id), "settings give way once, to others that have worked");
        return this.after(this.fallbackMs, () => this.readFile());
      case "loadVerified":
        assert.ok(this.processes.get(effect.id)?.hasGivenToken ?? true, "no process is believed without a token");
        return;
      default:
        return;
    }
  }

  private cut(id: string): void {
    const cut = [...this.active].filter((client) => client.ticket.id === id && client.state === "answers");
    for (const client of cut) this.after(1, () => this.endAnswer(client, "answered"));
  }

  private granted({ number }: Ticket): void {
    const client = this.clients[number - 1];
    assert.ok(client);
    requireSafeGrant(this, client);
    client.state = "answers";
    this.after(client.answerMs, () => this.endAnswer(client, "answered"));
  }

  private rejected({ number }: Ticket, error: GatewayError): void {
    const client = this.clients[number - 1];
    assert.ok(client?.state === "waits" || client?.state === "elsewhere", "only a request that waits is rejected");
    Object.assign(client, { state: "rejected", error });
    this.active.delete(client);
  }

  private endAnswer(client: Client, state: "answered" | "left"): void {
    if (client.state !== "answers") return;
    client.state = state;
    this.active.delete(client);
    this.send({ kind: "released", id: client.ticket.id });
    if (state === "answered") this.onSettled(client);
  }

  private load(id: string): void {
    requireSafeLoad(this, id);
    this.onLoad(id);
    const { outcome } = this;
    this.call("load", 5, () => {
      const isRefused = outcome === "refused" || !this.listed.has(id);
      const error = isRefused ? refused() : brokenOff();
      if (!this.isReady || isRefused || outcome === "breaksOff") return this.send({ kind: "loadSent", error });
      this.loads.push(id);
      const process: Process = { value: "loading", origin: `o${++this.origins}`, hasGivenToken: false };
      if (!this.processes.has(id)) this.processes.set(id, process);
      this.observe();
      this.send({ kind: "loadSent", error: null });
      if (outcome !== "stalls") this.after(this.loadMs, () => this.endLoad(id, process, outcome));
    });
  }

  private endLoad(id: string, process: Process, outcome: LoadOutcome): void {
    if (this.processes.get(id) !== process) return;
    if (outcome === "ends" || outcome === "short") this.processes.delete(id);
    else process.value = "loaded";
    if (outcome !== "deaf") this.notice();
  }

  private readFile(): void {
    Object.assign(this, { file: this.file + 1, outcome: "loads", token: "given" });
    this.observe();
  }

  private askToken(id: string): void {
    const { origin } = this.loaded.get(id) ?? { origin: "" };
    this.call(`askToken ${origin}`, this.tokenMs, () => {
      const answer = tokenOf(this.processes.get(id), origin, this.token);
      if (answer) this.send({ kind: "tokenAnswered", id, origin, answer });
    });
  }

  private unloading(id: string): void {
    requireSafeUnload(this, id);
    const { unloadFails } = this;
    this.call(`unload ${id}`, 5, () => {
      if (unloadFails && this.isReady) {
        return this.send({ kind: "unloadSent", id, error: brokenOff() });
      }
      const process = this.processes.get(id);
      this.after(this.unloadMs, () => {
        if (this.processes.get(id) === process) this.crash(id);
      });
      this.send({ kind: "unloadSent", id, error: null });
    });
  }

  private drained(drain: number): void {
    const change = this.changes.get(drain);
    assert.ok(change && !change.isDrained, "drained once, and only while the change waits");
    change.isDrained = true;
    this.after(10, () => {
      for (const id of this.processes.keys()) if (covers(change.models, id)) this.processes.delete(id);
      this.observe();
      this.endChange(drain);
    });
  }

  private endChange(drain: number): void {
    this.changes.delete(drain);
    this.send({ kind: "drainOver", drain });
  }
}
