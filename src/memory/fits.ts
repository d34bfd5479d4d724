// Whether a model fits into memory, in words, with what would make it fit. Pure.
import { memoryText } from "../core/memory-text.ts";
import { type ByDevice, host, type Need, scarcest } from "./need.ts";
import type { Remedy } from "./remedy.ts";

/** As the condition `Fits` has it. */
export interface FitsFact {
  readonly reason: "Fits" | "TooLarge" | "Refused" | "Estimating" | "NotEstimated";
  readonly message: string;
}

/** `why`: the engine's words. */
export function refusedFact(why: string): FitsFact {
  return { reason: "Refused", message: `The engine refuses its settings or its file: ${why}.` };
}

export function fitsFact(
  need: Need,
  limits: ByDevice,
  remedyOf: () => Remedy | null | undefined,
  { source = need.source, where = "models may take" }: { readonly source?: string; readonly where?: string } = {},
): FitsFact {
  const short = scarcest(need.bytes, limits);
  if (!short || short.needed <= short.limit)
    return { reason: "Fits", message: `It needs ${needText(need, limits)} (${source}).` };
  const needed = `It needs ${memoryText(short.needed)} of ${placeOf(short.device)} (${source}), where ${where} ${memoryText(short.limit)}`;
  const remedy = remedyOf();
  return { reason: "TooLarge", message: remedy ? `${needed}: ${remedyText(remedy)}.` : `${needed}.` };
}

/** `5.1 GiB of 7.5 GiB`; of several devices each, with its name. */
function needText({ bytes }: Need, limits: ByDevice): string {
  const taken = [...bytes].filter(([device, count]) => count > 0 || bytes.size === 1 || device !== host);
  const texts = taken.map(([device, count]) => {
    const limit = [...limits].find(([name]) => name.toLowerCase() === device.toLowerCase())?.[1];
    const of = limit === undefined ? "" : ` of ${memoryText(limit)}`;
    return `${memoryText(count)}${of}${bytes.size === 1 ? "" : ` of ${placeOf(device)}`}`;
  });
  return texts.join(" and ");
}

export function remedyText({ context, quantized }: Remedy): string {
  const withTypes = "cache-type-k and cache-type-v q8_0";
  if (context === null && quantized === null) return "no context would fit";
  if (context === null) return `with ${withTypes}, a context of ${quantized} would fit`;
  const more = quantized === null || quantized <= context ? "" : `; with ${withTypes}, ${quantized}`;
  return `a context of ${context} would fit${more}`;
}

export function placeOf(device: string): string {
  return device === host ? "main memory" : device;
}
