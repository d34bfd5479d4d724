// The memory of the simulated machine: one device, in GiB.
import type { ByDevice, Memory } from "../../../src/scheduler/state/world.ts";

const gibibyte = 2 ** 30;
const bytes = (count: number): ByDevice => new Map([["Host", count * gibibyte]]);

export class SimulatedMemory {
  /** What a model takes; absent: nothing; null: that cannot be known; undefined: it is not known yet. */
  readonly needs = new Map<string, number | null | undefined>();
  /** What all models may take. */
  most = Number.POSITIVE_INFINITY;
  hasLeftovers = false;

  /** Of a model whose need is not known it cannot be said. */
  fits(id: string, others: readonly string[]): boolean {
    const need = this.needs.get(id) ?? 0;
    return need === 0 || others.reduce((sum, other) => sum + (this.needs.get(other) ?? 0), need) <= this.most;
  }

  seen(): Memory {
    const need = (id: string): ByDevice | null | undefined => {
      const known = this.needs.has(id) ? this.needs.get(id) : 0;
      return typeof known === "number" ? bytes(known) : known;
    };
    return {
      need,
      taken: (id) => need(id) ?? bytes(0),
      limits: () => bytes(this.most),
      hasLeftovers: () => this.hasLeftovers,
      refusal: (id, pinned) => {
        const left = pinned.reduce((sum, takes) => sum - (takes.get("Host") ?? 0) / gibibyte, this.most);
        return `needs ${this.needs.get(id)} of ${left}`;
      },
    };
  }
}
