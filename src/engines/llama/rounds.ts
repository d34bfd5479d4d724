// What is under way, looked at by one timer for all of it: a timer for each request costs more than its looks.
// An array and not a Set: a Set leaves its old tables behind, each with what was in it then, and V8 kept every finished request
// until the next full collection; about 30 % of the processor time of a chat went into that.

export interface Member {
  /** Where it is in its rounds; theirs to set. */
  place: number;
}

export interface Rounds<M> {
  add(member: M): void;
  /** Safe to call twice. */
  delete(member: M): void;
  members(): readonly M[];
}

export function createRounds<M extends Member>(everyMs: number, look: (member: M) => void): Rounds<M> {
  const all: M[] = [];
  let timer: NodeJS.Timeout | null = null;

  function round(): void {
    timer = null;
    // A look may end its member.
    for (const member of all.slice()) look(member);
    begin();
  }

  /** It is not ended with the last member: requests that come one after another would make a timer each. */
  function begin(): void {
    if (all.length > 0) timer ??= setTimeout(round, everyMs).unref();
  }

  return {
    add: (member) => {
      member.place = all.push(member) - 1;
      begin();
    },
    delete: (member) => {
      if (all[member.place] !== member) return;
      const last = all.pop();
      if (last === undefined || last === member) return;
      all[member.place] = last;
      last.place = member.place;
    },
    members: () => [...all],
  };
}
