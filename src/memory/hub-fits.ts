// Whether models of the document that are still on the hub fit into memory, by the heads of their files there.
import { readGgufFacts } from "../cache/gguf/metadata.ts";
import { contextInForce } from "../core/context-size.ts";
import { toGatewayError } from "../core/errors.ts";
import { createSerial } from "../core/serial.ts";
import type { Desired } from "../desired/document/document.ts";
import { cachedIn } from "../plan/find-model.ts";
import type { CachedModel, Observed } from "../plan/observed.ts";
import { ctxSizeIn, effectiveValues } from "../plan/preset-file.ts";
import type { WholePlan } from "../plan/whole/steps.ts";
import { type FitsFact, fitsFact } from "./fits.ts";
import { type HubModel, pulledModels } from "./hub-models.ts";
import type { HubNeeds } from "./hub-needs.ts";
import type { Memory } from "./memory.ts";
import { type ByDevice, bytesOf, type Need } from "./need.ts";
import { questionOf } from "./question.ts";
import { contextStep, createRemedies, largestContext, type Overrides } from "./remedy.ts";

/** A pass, with why the pull of a model has failed; null: it has not. */
export interface SeenPass {
  readonly generation: number;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly failureOf: (id: string) => string | null;
}

interface Known {
  readonly need: Need;
  readonly model: CachedModel;
  readonly values: ReadonlyMap<string, string>;
  readonly onHub: readonly HubModel[];
}

/** ms that a pull takes before its model is asked about: most models are here before. */
const patienceMs = 10_000;
/** ms until what could not be known is asked again. */
const againMs = 60_000;

const source = "estimated by the head of its file on the hub";

export function createHubFits(options: {
  readonly needs: HubNeeds;
  readonly memory: Pick<Memory, "limits" | "ask" | "obstacle">;
  /** What would come of the document, with the hub asked for the models that are wanted. */
  readonly planOf: (pass: SeenPass, isWanted: (id: string) => boolean) => Promise<WholePlan>;
  /** More is known of models. */
  readonly onKnown: () => void;
  readonly now: () => number;
}) {
  const { needs, memory, planOf, onKnown, now } = options;
  const inTurn = createSerial();
  /** By the document's ids; a text: why it cannot be known. */
  let facts: ReadonlyMap<string, Known | string> = new Map();
  let [asked, againAt] = ["", 0];
  let timer: NodeJS.Timeout | undefined;
  const remedies = createRemedies((_key, work) => void work().then(onKnown));

  async function lookUp(pass: SeenPass, ids: readonly string[]): Promise<void> {
    const found = new Map(facts);
    try {
      const whole = await planOf(pass, (id) => ids.includes(id));
      const pulled = pulledModels(whole);
      const onHub = [...pulled.values()].filter((model) => typeof model !== "string");
      for (const id of ids) {
        const why = pulled.get(id) ?? "no pull of it is planned";
        const known = typeof why === "string" ? why : await knownOf(id, whole.end.world.observed, onHub);
        found.set(id, known);
      }
    } catch (error) {
      for (const id of ids) found.set(id, toGatewayError(error).message);
    }
    facts = found;
    onKnown();
  }

  async function knownOf(id: string, after: Observed, onHub: readonly HubModel[]): Promise<Known | string> {
    const model = cachedIn(after, id);
    if (!model || after.preset.state === "unknown") return "its settings are not known";
    const values = effectiveValues(after.preset.value, model.upstreamId);
    try {
      return { need: await needs.need(questionOf(model, values), onHub), model, values, onHub };
    } catch (error) {
      return toGatewayError(error).message;
    }
  }

  function contextFor({ model, values, onHub }: Known, within: ByDevice, overrides: Overrides) {
    const question = questionOf(model, values);
    return needs.withHeads(question, onHub, async (askedOf) => {
      const ask = async (tokens: number) => {
        const asked = new Map([...values, ...Object.entries(overrides), ["ctx-size", String(tokens)] as const]);
        return bytesOf(await memory.ask(askedOf(questionOf(model, asked))));
      };
      const file = askedOf(question).runs[0]?.[1] ?? "";
      const trained = (await readGgufFacts(file))?.contextLength ?? null;
      return largestContext(ask, within, contextInForce(ctxSizeIn(values), trained, null) ?? contextStep);
    });
  }

  return {
    /** The newest pass: models that are not in the cache are asked about, those whose pull has failed are not. */
    see: (pass: SeenPass): void => {
      const { desired, observed, generation, failureOf } = pass;
      const absent = desired.models.filter(({ id, source: file }) => !file && !cachedIn(observed, id)?.complete);
      const failures = new Map(absent.flatMap(({ id }) => [[id, failureOf(id)] as const]));
      const ids = absent.map(({ id }) => id).filter((id) => failures.get(id) === null);
      facts = new Map(
        absent.flatMap(({ id }) => {
          const fact = failures.get(id) ?? facts.get(id);
          return fact === undefined ? [] : [[id, fact] as const];
        }),
      );
      const question = JSON.stringify([generation, ids, memory.obstacle()]);
      if (question === asked && now() < againAt) return;
      [asked, againAt] = [question, now() + againMs];
      clearTimeout(timer);
      if (ids.length === 0) return;
      timer = setTimeout(() => void inTurn(() => lookUp(pass, ids)), patienceMs).unref();
    },
    /** Of a model that is not in the cache; null: it has not been asked about yet. */
    fits: (id: string): FitsFact | null => {
      const fact = facts.get(id);
      if (fact === undefined) return null;
      if (typeof fact === "string") return { reason: "NotEstimated", message: `What it needs is not known: ${fact}.` };
      const seek = (within: ByDevice, overrides: Overrides) => contextFor(fact, within, overrides);
      const { key } = questionOf(fact.model, fact.values);
      return fitsFact(fact.need, memory.limits(), () => remedies.of(key, memory.limits(), seek), { source });
    },
    close: (): void => clearTimeout(timer),
  };
}
