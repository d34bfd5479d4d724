// What an engine prints of a load that fails. Pure.

/** Lines of its level for errors. */
const logged = /^\S+ E /;
/** These, those of its arguments, failed assertions and exceptions that nothing has caught. */
const complaint = /^\S+ E |^error\b|GGML_ASSERT|GGML_ABORT|terminate called|what\(\): /i;
const shortage =
  /out of memory|cannot allocate|bad_alloc|alloc\w* (?:failed|buffer|of size)|(?:failed|unable) to (?:re)?alloc|OutOf\w*Memory/i;

/** The machine had too little memory for it. */
export function isMemoryShortage(lines: readonly string[]): boolean {
  return lines.some((line) => shortage.test(line));
}

/**
 * The first complaint, as those after it come of it, without its time and place; null: there is none. The log is written
 * by a thread of its own: an exception's words may come before it, and be all there is.
 */
export function causeIn(lines: readonly string[]): string | null {
  const complaints = lines.filter((line) => complaint.test(line) && !line.startsWith("terminate called"));
  const first = complaints.find((line) => logged.test(line)) ?? complaints[0];
  return first === undefined ? null : first.replace(/^(?:\S+ E (?:srv +|cmn +)?|\s*what\(\): +)/, "").trim();
}

/** The engine refused what it was given. One that was killed says nothing. */
export function isSettingsFault(lines: readonly string[]): boolean {
  return lines.some((line) => complaint.test(line)) && !isMemoryShortage(lines);
}
