// How fast this machine is just now: a bound on processor time that holds on a developer's machine holds in proportion on a slow one.

const text = JSON.stringify(Array.from({ length: 200_000 }, (_, n) => n * 7));
/** Its parsing takes so many ms of processor time on a developer's machine. */
const usualMs = 3.4;

/** How many times more processor time the same work takes here and now; at least 1. */
export function slowness(): number {
  const taken = Array.from({ length: 9 }, () => {
    const before = process.cpuUsage();
    JSON.parse(text);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  const median = taken.toSorted((a, b) => a - b)[taken.length >> 1] ?? 0;
  return Math.max(1, median / usualMs);
}
