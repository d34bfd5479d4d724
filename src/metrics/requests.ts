// Counters of requests. A request looks its meter up once; from then on each event is an addition to a number that is there already.
// Pure.
import { firstTokenBounds, requestBounds, waitBounds } from "./families.ts";
import { Histogram } from "./histogram.ts";
import { labelText } from "./text.ts";

/** In place of a name that no model has: a client may invent any number of them. */
export const noModel = "other";

/** By the first digit of the status. */
export const statusClasses = ["cancelled", "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

/** What a model's requests have in common, whatever their routes. */
export class ModelMeter {
  readonly id: string;
  readonly labels: string;
  promptTokens = 0;
  completionTokens = 0;
  readonly queueWait = new Histogram(waitBounds);

  constructor(model: string) {
    this.id = model;
    this.labels = labelText({ model });
  }

  addTokens(prompt: number, completion: number): void {
    this.promptTokens += prompt;
    this.completionTokens += completion;
  }
}

/** Requests of one route for one model. */
export class RequestMeter {
  readonly labels: string;
  readonly model: ModelMeter;
  /** By {@link statusClasses}. */
  readonly counts = [0, 0, 0, 0, 0, 0];
  firstToken: Histogram | null = null;
  duration: Histogram | null = null;

  constructor(family: string, route: string, model: ModelMeter) {
    this.labels = `${labelText({ family, route })},${model.labels}`;
    this.model = model;
  }

  /** `ms` since the request was read. */
  firstTokenCame(ms: number): void {
    (this.firstToken ??= new Histogram(firstTokenBounds)).observe(ms / 1000);
  }

  /** `ms` since the request was read. */
  wasAnswered(ms: number): void {
    (this.duration ??= new Histogram(requestBounds)).observe(ms / 1000);
  }

  /** `status`: that of the answer, or of the error in which it ended; 0: the client left. */
  ended(status: number): void {
    const at = Math.trunc(status / 100);
    this.counts[at] = (this.counts[at] ?? 0) + 1;
  }
}

/** Of the requests of one family. */
export interface FamilyMeter {
  /** `route`: below the family's prefix, as it is declared. `model`: an id of the catalog, or {@link noModel}. */
  of(route: string, model: string): RequestMeter;
}

function isModel(id: string): boolean {
  return id !== "" && id !== noModel;
}

export type RequestMeters = ReturnType<typeof createRequestMeters>;

export function createRequestMeters() {
  const models = new Map<string, ModelMeter>();
  /** By family, route and model. */
  const requests = new Map<string, RequestMeter>();

  function modelOf(id: string): ModelMeter {
    let meter = models.get(id);
    if (!meter) models.set(id, (meter = new ModelMeter(id)));
    return meter;
  }

  return {
    family: (family: string): FamilyMeter => ({
      of: (route, model) => {
        const key = `${family} ${route} ${model}`;
        let meter = requests.get(key);
        if (!meter) requests.set(key, (meter = new RequestMeter(family, route, modelOf(model))));
        return meter;
      },
    }),
    /** Those that requests were sent to. */
    models: (): readonly ModelMeter[] => [...models.values()].filter(({ id }) => isModel(id)),
    requests: (): readonly RequestMeter[] => [...requests.values()],
    /** Drops the series of models that are gone: what is pulled and deleted over the years would else stay. */
    keep: (ids: ReadonlySet<string>): void => {
      const isGone = (id: string): boolean => isModel(id) && !ids.has(id);
      for (const id of models.keys()) if (isGone(id)) models.delete(id);
      for (const [key, { model }] of requests) if (isGone(model.id)) requests.delete(key);
    },
  };
}
