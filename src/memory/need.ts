// What a model takes of each device's memory, and whether that fits. Pure.

/** Bytes by device as the engine names them; "Host" is main memory. */
export type ByDevice = ReadonlyMap<string, number>;

/** Bytes of one device. */
export interface Parts {
  /** Weights, and what else is loaded whole. */
  readonly model: number;
  /** The KV cache. */
  readonly context: number;
  /** Buffers of the computation: the engine touches them as it needs them. */
  readonly compute: number;
}

/** What the engine's own allocator would take, by device. */
export type Estimate = ReadonlyMap<string, Parts>;

export interface Need {
  /** What counts: measured, else estimated. */
  readonly bytes: ByDevice;
  readonly source: "estimated" | "measured";
  readonly estimated: ByDevice | null;
  readonly measured: ByDevice | null;
}

export const host = "Host";

const noParts: Parts = { model: 0, context: 0, compute: 0 };

export function bytesOf(estimate: Estimate): ByDevice {
  return new Map([...estimate].map(([device, { model, context, compute }]) => [device, model + context + compute]));
}

/** Of several files that are loaded together. */
export function addEstimates(estimates: readonly Estimate[]): Estimate {
  const sum = new Map<string, Parts>();
  for (const [device, parts] of estimates.flatMap((each) => [...each])) {
    const { model, context, compute } = sum.get(device) ?? noParts;
    sum.set(device, {
      model: model + parts.model,
      context: context + parts.context,
      compute: compute + parts.compute,
    });
  }
  return sum;
}

/** The estimate with a file that is loaded whole: beside the weights where a device of its own has any, else in main memory. */
export function withFile(estimate: Estimate, bytes: number): Estimate {
  const device = [...estimate].find(([name, { model }]) => name !== host && model > 0)?.[0] ?? host;
  return addEstimates([estimate, new Map([[device, { ...noParts, model: bytes }]])]);
}

export function needOf(estimate: Estimate | null, measured: ByDevice | null): Need | null {
  const estimated = estimate && bytesOf(estimate);
  const bytes = measured ?? estimated;
  return bytes && { bytes, source: measured ? "measured" : "estimated", estimated, measured };
}

/** As it goes over the wire. */
export function needBody(need: Need) {
  const { bytes, source, estimated, measured } = need;
  return {
    bytes: totalOf(bytes),
    source,
    estimated: estimated && Object.fromEntries(estimated),
    measured: measured && Object.fromEntries(measured),
  };
}

/** Of a device without a limit nothing is known, so it sets none. Names are compared ignoring case. */
export function fitsIn(bytes: ByDevice, limits: ByDevice): boolean {
  return excessOf(bytes, limits) <= 0;
}

/** What is left of the limits beside these. */
export function leftBeside(limits: ByDevice, others: readonly ByDevice[]): ByDevice {
  const takenOf = (device: string): number => others.reduce((sum, other) => sum + (other.get(device) ?? 0), 0);
  return new Map([...limits].map(([device, limit]) => [device, Math.max(0, limit - takenOf(device))]));
}

/** Bytes that the device lacks which lacks the most; below 0: so many are left. */
export function excessOf(bytes: ByDevice, limits: ByDevice): number {
  const scarce = scarcest(bytes, limits);
  return scarce ? scarce.needed - scarce.limit : Number.NEGATIVE_INFINITY;
}

/** The device that lacks the most, or has the least left; undefined: none has a limit. */
export function scarcest(
  bytes: ByDevice,
  limits: ByDevice,
): { readonly device: string; readonly needed: number; readonly limit: number } | undefined {
  const folded = new Map([...limits].map(([device, limit]) => [device.toLowerCase(), limit]));
  const limited = [...bytes].flatMap(([device, needed]) => {
    const limit = folded.get(device.toLowerCase());
    return limit === undefined ? [] : [{ device, needed, limit }];
  });
  return limited.toSorted((a, b) => b.needed - b.limit - (a.needed - a.limit))[0];
}

export function totalOf(bytes: ByDevice): number {
  return [...bytes.values()].reduce((sum, next) => sum + next, 0);
}
