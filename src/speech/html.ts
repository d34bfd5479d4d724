// HTML taken out of a text: elements, comments, scripts and entities. Whatever is no HTML is left as it was written.
// Pure. Takes time in proportion to the text: nothing is looked for twice, and a tag ends at the next `<` at the latest.

/** Those that part what stands before them from what comes after. */
const blocks: ReadonlySet<string> = new Set(
  (
    "address article aside blockquote body br button caption center dd details dialog div dl dt fieldset figcaption figure " +
    "footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li main menu nav noframes noscript ol " +
    "optgroup option p pre search section select summary table tbody td template textarea tfoot th thead title tr ul"
  ).split(" "),
);
const inline: ReadonlySet<string> = new Set(
  (
    "a abbr acronym area audio b base bdi bdo big canvas cite code col colgroup data datalist del dfn em embed font i img " +
    "input ins kbd label link map mark math meta meter nobr object output param picture progress q rp rt ruby s samp script " +
    "slot small source span strike strong style sub sup svg time track tt u var video wbr"
  ).split(" "),
);
/** What an attribute without a value may be called: `a <b and c> d` is no tag. */
const flags: ReadonlySet<string> = new Set(
  (
    "allowfullscreen async autofocus autoplay checked compact controls default defer disabled download formnovalidate hidden " +
    "inert ismap itemscope loop multiple muted nomodule nowrap novalidate open playsinline readonly required reversed selected"
  ).split(" "),
);

const value = String.raw`\s*=\s*(?:"[^"<]*"|'[^'<]*'|[^\s"'=<>\x60][^\s"'<>\x60]*)`;
const attributeName = String.raw`[a-z@:_][\w.:@-]*`;
// Each is tried where it has to begin.
const codeSpan = /`[^`\n]+`/y;
const declaration = /<(?:!doctype|\?xml)\b[^<>]*>/iy;
const address = /<([a-z][a-z\d+.-]{1,31}:[^\s<>]+|[^\s<>@"'=]+@[^\s<>@"'=]+)>/iy;
const tag = new RegExp(String.raw`<(\/?)([a-z][a-z\d]*)((?:\s+${attributeName}(?:${value})?)*)\s*\/?>`, "iy");
const attribute = new RegExp(`(${attributeName})(${value})?`, "gi");
const ends = { comment: /-->/g, script: /<\/script\b[^<>]*>/gi, style: /<\/style\b[^<>]*>/gi } as const;

/** An element that parts texts becomes a blank line. What stands between backquotes stays, and so does an address in `<>`. */
export function withoutHtml(text: string): string {
  if (!/[<&]/.test(text)) return text;
  const endOf = createEndSearch(text);
  const read: string[] = [];
  let from = 0;
  for (const { index } of text.matchAll(/[<`]/g)) {
    // Inside of what has been left out already.
    if (index < from) continue;
    const mark = markAt(text, index, endOf);
    if (mark === null) continue;
    read.push(withoutEntities(text.slice(from, index)), mark.read);
    from = mark.end;
  }
  read.push(withoutEntities(text.slice(from)));
  return read.join("");
}

interface Mark {
  /** What is read in its place. */
  readonly read: string;
  readonly end: number;
}

type EndSearch = (what: keyof typeof ends, from: number) => number | null;

/** What has no end once has none later on either. */
function createEndSearch(text: string): EndSearch {
  const endless = new Set<string>();
  return (what, from) => {
    if (endless.has(what)) return null;
    const found = findFrom(ends[what], text, from);
    if (found === null) endless.add(what);
    return found && found.index + found[0].length;
  };
}

/** Null for what is no HTML. */
function markAt(text: string, index: number, endOf: EndSearch): Mark | null {
  const code = findFrom(codeSpan, text, index)?.[0];
  if (code !== undefined) return { read: code, end: index + code.length };
  if (text.startsWith("<!--", index)) {
    const end = endOf("comment", index + 2);
    return end === null ? null : { read: " ", end };
  }
  const declared = findFrom(declaration, text, index)?.[0];
  if (declared !== undefined) return { read: "", end: index + declared.length };
  const [inBrackets, link] = findFrom(address, text, index) ?? [];
  if (inBrackets !== undefined && link !== undefined) return { read: link, end: index + inBrackets.length };
  return tagAt(text, index, endOf);
}

function tagAt(text: string, index: number, endOf: EndSearch): Mark | null {
  const [whole, slash, written = "", attributes = ""] = findFrom(tag, text, index) ?? [];
  if (whole === undefined || !areAttributes(attributes)) return null;
  // `List<Object>`, `Set<A>`: elements are written small or large.
  if (!/^(?:[a-z\d]+|[A-Z\d]+)$/.test(written)) return null;
  if (slash === "" && /^[A-Z]$/.test(written) && /[\p{L}\p{N}]/u.test(text.charAt(index - 1))) return null;
  const name = written.toLowerCase();
  const end = index + whole.length;
  // Without an end it would take all the rest along.
  if (slash === "" && (name === "script" || name === "style")) return { read: " ", end: endOf(name, end) ?? end };
  if (blocks.has(name)) return { read: "\n\n", end };
  return inline.has(name) ? { read: "", end } : null;
}

function areAttributes(attributes: string): boolean {
  return [...attributes.matchAll(attribute)].every(
    ([, name = "", given]) => given !== undefined || flags.has(name.toLowerCase()),
  );
}

function findFrom(expression: RegExp, text: string, index: number): RegExpExecArray | null {
  expression.lastIndex = index;
  return expression.exec(text);
}

function withoutEntities(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z][a-z\d]{1,7}));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return characters.get(name) ?? characters.get(name.toLowerCase()) ?? whole;
      return character(decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal));
    },
  );
}

function character(code: number): string {
  const isCharacter = code >= 0x20 && code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : " ";
}

/** From U+00A0 on, in order. */
const latin =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute " +
  "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml " +
  "Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml " +
  "eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";

/** What they stand for, each right after its name. */
const others =
  "amp & lt < gt > quot \" apos ' num # percnt % lsqb [ rsqb ] ast * ndash – mdash — hellip … bull • lsquo ‘ rsquo ’ sbquo ‚ " +
  "ldquo “ rdquo ” bdquo „ lsaquo ‹ rsaquo › euro € trade ™ permil ‰ prime ′ Prime ″ minus − ne ≠ le ≤ ge ≥ asymp ≈ infin ∞ " +
  "larr ← rarr → OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ";

const characters: ReadonlyMap<string, string> = new Map([
  ...latin.split(" ").map((name, index): [string, string] => [name, String.fromCodePoint(0xa0 + index)]),
  ...[...others.matchAll(/(\w+) (\S)/g)].map(([, name = "", means = ""]): [string, string] => [name, means]),
  ...["ensp", "emsp", "thinsp"].map((name): [string, string] => [name, " "]),
]);
