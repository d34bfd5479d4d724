// What is under way, looked at by one timer for all of it: a timer for each request costs more than its looks.
import { type Bag, createBag, type Member } from "../../core/bag.ts";

export type Rounds<M> = Bag<M>;

export function createRounds<M extends Member>(everyMs: number, look: (member: M) => void): Rounds<M> {
  const all = createBag<M>();
  let timer: NodeJS.Timeout | null = null;

  function round(): void {
    timer = null;
    const members = all.members();
    // A look may end its member.
    for (const member of members) look(member);
    if (members.length > 0) begin();
  }

  /** It is not ended with the last member: requests that come one after another would make a timer each. */
  function begin(): void {
    timer ??= setTimeout(round, everyMs).unref();
  }

  return {
    ...all,
    add: (member) => {
      all.add(member);
      begin();
    },
  };
}
