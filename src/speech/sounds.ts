// Estimates how many sounds a text has, before an engine gets it.
// Pure. An engine spells what it cannot read as a word: three letters of `www` have as many sounds as twenty of a sentence.

/** In letters of an ordinary word, two phoneme ids each. Measured with espeak-ng, voices of the wrong language included. */
const weights = {
  /** Spoken as a word by any voice, or not at all. */
  plain: 1,
  /** Spoken as a word by a voice of that language, spelled by others: up to fourteen ids. */
  foreign: 2,
  /** Whole words or syllables, digits, signs, letters by their names: twelve ids and more. */
  spelled: 6,
} as const;

const readByAll = scripts("Armenian Bengali Devanagari Georgian Gujarati Gurmukhi Kannada Malayalam Sinhala Tamil");
const readByFew = scripts("Arabic Cyrillic Greek Hangul Hebrew Syriac Telugu");

/** Runs are short: a text of one run is scanned again for each piece of it. */
const run = new RegExp(
  [
    String.raw`(?<latin>[A-Za-zÀ-ÖØ-öø-ɏ]{1,40})`,
    String.raw`(?<plain>[\s\p{M}\u200d.,;:!?'"“”„‘’‚«»‹›()[\]{}–—-]{1,40}|[${readByAll}]{1,40})`,
    String.raw`(?<foreign>[${readByFew}]{1,40})`,
    ".",
  ].join("|"),
  "gsu",
);

/** Where a text has as many sounds as `limit` letters; after its first character at the earliest. */
export function reach(text: string, limit: number): number {
  // Whatever is in it: 33,000 sentences of two characters took 90 ms.
  if (text.length * weights.spelled <= limit) return text.length;
  let left = limit;
  for (const { 0: found, index, groups = {} } of text.matchAll(run)) {
    const weight = weightOf(groups);
    const fitting = Math.floor(left / weight);
    const characters = Array.from(found);
    if (characters.length > fitting)
      return Math.max(index + characters.slice(0, fitting).join("").length, (characters[0] ?? "").length);
    left -= characters.length * weight;
  }
  return text.length;
}

function weightOf({ latin, plain, foreign }: Readonly<Record<string, string | undefined>>): number {
  if (plain !== undefined) return weights.plain;
  if (foreign !== undefined) return weights.foreign;
  return latin !== undefined && isWord(latin) ? weights.plain : weights.spelled;
}

/** One letter alone is read by its name, and so is what has no vowel. */
function isWord(letters: string): boolean {
  return letters.length > 1 && /[aeiouyæøœı]/i.test(letters.normalize("NFD"));
}

function scripts(names: string): string {
  return names
    .split(" ")
    .map((name) => String.raw`\p{Script=${name}}`)
    .join("");
}
