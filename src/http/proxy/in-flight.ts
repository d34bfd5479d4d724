// Requests in flight as people see them, and the end of one by its number.
import type { RequestsBody } from "../../../schemas/requests.ts";
import { type Bag, createBag, type Member } from "../../core/bag.ts";

export type RequestState = RequestsBody["requests"][number]["state"];

/** A request from its arrival to its last byte. */
export interface Underway extends Member {
  readonly model: string;
  /** Below its family's prefix. */
  readonly route: string;
  /** Of `performance.now()`. */
  readonly beganAt: number;
  readonly number: number;
  state(): RequestState;
  /** Ends it with the error `cancelled`; the engine stops. */
  cancel(): void;
}

export type InFlight = ReturnType<typeof createInFlight>;

export function createInFlight() {
  const all: Bag<Underway> = createBag();
  let last = 0;
  return {
    nextNumber: () => ++last,
    add: all.add,
    delete: all.delete,
    /** The oldest first. */
    list: (): RequestsBody["requests"] => {
      const age = Date.now() - performance.now();
      return all
        .members()
        .toSorted((one, other) => one.number - other.number)
        .map((each) => ({
          id: each.number,
          model: each.model,
          route: each.route,
          state: each.state(),
          startedAt: new Date(age + each.beganAt).toISOString(),
        }));
    },
    /** False: there is none of this number. */
    cancel: (number: number): boolean => {
      const found = all.members().find((each) => each.number === number);
      found?.cancel();
      return found !== undefined;
    },
  };
}
