// One timer that looks at many things in turn, for as long as there are any: a timer for each request costs more than its looks.

export interface Rounds<M> extends Iterable<M> {
  add(member: M): void;
  delete(member: M): void;
}

export function createRounds<M>(everyMs: number, look: (member: M) => void): Rounds<M> {
  const members = new Set<M>();
  let timer: NodeJS.Timeout | null = null;

  function round(): void {
    timer = null;
    for (const member of members) look(member);
    begin();
  }

  /** It is not ended with the last member: requests that come one after another would make a timer each. */
  function begin(): void {
    if (members.size > 0) timer ??= setTimeout(round, everyMs).unref();
  }

  return {
    add: (member) => {
      members.add(member);
      begin();
    },
    delete: (member) => void members.delete(member),
    [Symbol.iterator]: () => members.values(),
  };
}
