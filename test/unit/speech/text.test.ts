// Text on its way to a speech engine: what a person wrote, as it is read aloud, in pieces that an engine can bear.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { plainText } from "../../../src/speech/plain-text.ts";
import { pieceLimit, speechPieces } from "../../../src/speech/text.ts";

describe("text that is read aloud", () => {
  const cases: readonly (readonly [what: string, text: string, spoken: string])[] = [
    ["a blank line is a pause", "Hello.\n\nWorld", "Hello. World."],
    ["a line without a full stop before a blank one ends too", "First line\n\nSecond", "First line. Second."],
    ["a single line break is a space", "wrapped\nby hand.", "wrapped by hand."],
    ["ellipses are full stops", "Wait... what… now…", "Wait. what. now."],
    ["an ellipsis without a space does not glue words", "well…yes...no", "well. yes. no."],
    ["full stops of other scripts", "你好。世界！真的？", "你好. 世界! 真的?"],
    ["Arabic and Hindi ones", "مرحبا؟ नमस्ते। फिर", "مرحبا? नमस्ते. फिर."],
    ["bold and italics", "This is **bold**, *so* __very__ _nice_.", "This is bold, so very nice."],
    ["sums stay sums", "2 * 3 and 2*3 and snake_case.", "2 * 3 and 2*3 and snake_case."],
    ["headings and lists", "# Title\n- one\n- two\n1. three\n2) four", "Title. one. two. 1, three. 2, four."],
    ["links and images", "See [the page](https://a.example/x_y) ![a cat](cat.png).", "See the page a cat."],
    ["code", "Run `npm start`:\n```sh\nls -l\n```\nDone", "Run npm start: ls -l. Done."],
    ["tables", "| a | b |\n|---|:-:|\n| c | d |", "a, b. c, d."],
    ["quotes and rulers", "> said\n> she\n\n---\n\nthe end", "said she. the end."],
    ["what looks like HTML is text", "<p>One &amp; <b>two</b></p>", "<p>One &amp; <b>two</b></p>."],
    ["less than is text", "if a < b and c > d.", "if a < b and c > d."],
    ["sounds in brackets are words", "I am [[ bˈætmæn ]].", "I am bˈætmæn."],
    ["half a surrogate pair and controls", "a\ud83db\u0000c\u200bd.", "a b cd."],
    ["many marks are one", "What!!! No??", "What! No?"],
    ["a quote's end counts as the sentence's", 'He said "yes."\n\nThen', 'He said "yes." Then.'],
    ["nothing", " \n\t\n ", ""],
  ];
  for (const [what, text, spoken] of cases) it(what, () => assert.equal(plainText(text), spoken));

  it("takes time in proportion to the text, also for text made to hurt", () => {
    const nasty = ["<", "[", "[a](", "*", "_", "`", "> ", "|", "- ", "&", ". ", "\n", " ", "#", "[["];
    const began = process.cpuUsage();
    for (const part of nasty) for (const last of ["", "x"]) plainText(part.repeat(100_000 / part.length) + last);
    // Of the processor, as others may be busy on it.
    const ms = process.cpuUsage(began).user / 1000;
    assert.ok(ms < 3_000, `${ms} ms`);
  });
});

describe("pieces", () => {
  const texts = (text: string): string[] => speechPieces(text).map((piece) => piece.text);

  it("are sentences", () => {
    assert.deepEqual(texts("One. Two? Three! Four"), ["One.", "Two?", "Three!", "Four."]);
    assert.deepEqual(texts('"Yes." "No."'), ['"Yes."', '"No."']);
  });

  it("do not end at short forms, initials and dates", () => {
    assert.deepEqual(texts("Dr. Smith met J. Doe, e.g. on the 3. May."), ["Dr. Smith met J. Doe, e.g. on the 3. May."]);
    assert.deepEqual(texts("It costs 3.14 at example.com. Cheap."), ["It costs 3.14 at example.com.", "Cheap."]);
  });

  it("that nobody could pronounce are left out", () => {
    assert.deepEqual(texts("... — ***"), []);
    assert.deepEqual(texts("Well. — ! Yes. ..."), ["Well.", "Yes."]);
    assert.deepEqual(texts("100 % !"), ["100 %!"]);
    assert.deepEqual(texts(""), []);
  });

  it("of a sentence without end are cut at a comma, then at a space, and say so", () => {
    const words = Array.from(
      { length: 400 },
      (_, index) => `${"word".repeat((index % 3) + 1)}${index % 30 === 29 ? "," : ""}`,
    );
    const pieces = speechPieces(words.join(" "));
    assert.ok(pieces.every(({ text }) => text.length <= pieceLimit));
    assert.deepEqual([...new Set(pieces.map(({ ends }) => ends))].toSorted(), ["clause", "sentence"]);
    assert.ok(pieces.filter(({ ends }) => ends === "clause").every(({ text }) => text.endsWith(",")));
    assert.equal(pieces.map(({ text }) => text).join(" "), `${words.join(" ")}.`);
    const unpunctuated = speechPieces("and so on ".repeat(200));
    assert.deepEqual([...new Set(unpunctuated.map(({ ends }) => ends))], ["word", "sentence"]);
  });

  it("are the shorter the more sounds a character has", () => {
    const longest = (text: string): number => Math.max(...texts(text.repeat(400)).map((piece) => piece.length));
    assert.ok(longest("an ordinary sentence ") > 320);
    assert.ok(longest("обычное предложение ") < 180);
    for (const dense of ["天地玄黃", "เป็นมนุษย์", "ሰላም", "いろは", "777 ", "www ", "x ", "€ ", "ễ"])
      assert.ok(longest(dense) < 120, dense);
  });

  it("of 20,000 characters are all there, in order", () => {
    const sentence = "The quick brown fox jumps over the lazy dog near the river bank. ";
    const text = sentence.repeat(Math.ceil(20_000 / sentence.length)).slice(0, 20_000);
    const pieces = speechPieces(text);
    assert.ok(pieces.length > 300 && pieces.every(({ text: piece }) => piece.length <= pieceLimit));
    assert.equal(pieces.map(({ text: piece }) => piece).join(" "), plainText(text));
  });

  it("never break a character, and never grow beyond the limit, whatever the text", () => {
    const nasty = fc.string({
      unit: fc.constantFrom("a", " ", ",", ".", "😀", "👩‍👩‍👧", "é", "e\u0301", "漢", "\n", "*", "<b>", "\ud83d"),
    });
    fc.assert(
      fc.property(nasty, fc.integer({ min: 20, max: 60 }), (text, limit) => {
        for (const piece of speechPieces(text.repeat(4), limit)) {
          assert.ok(piece.text.length > 0 && piece.text.length <= limit, JSON.stringify(piece));
          assert.doesNotMatch(piece.text, /\p{Surrogate}/u);
        }
      }),
      { numRuns: 300 },
    );
  });
});
