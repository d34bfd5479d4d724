// What a model card says of its licence, in the forms that official cards have.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { licenseOf } from "../../../src/hub/voice-cards.ts";

const head = "# Model card for somebody (medium)\n\n* Language: en_US (English, United States)\n* Speakers: 1\n\n";
const dataset = "## Dataset\n\n* URL: https://example.org/data set\n";

describe("licenseOf", () => {
  for (const [what, card, license] of [
    ["a name", `${head}${dataset}* License: CC BY 4.0\n\n## Training\n\nFinetuned.\n`, "CC BY 4.0"],
    ["an address", `${head}${dataset}* License: https://example.org/l.html\n`, "https://example.org/l.html"],
    ["See URL, with two blanks", `${head}${dataset}* License:  See URL\n`, "see https://example.org/data set"],
    ["See URL without one", `${head}* License: See URL\n`, "See URL"],
    ["British, lines of Windows", `${head}* Licence: CC0\r\n* URL: x\r\n`, "CC0"],
    [
      "a heading",
      `${head}* URL: x\n\n## License\n\nThe weights are CC BY 4.0.\n\n## Training\n`,
      "The weights are CC BY 4.0.",
    ],
    ["an empty heading", `${head}## License\n\n## Training\n\nTrained.\n`, null],
    ["an empty line", `${head}* License:\n* URL: x\n`, null],
    ["no word of it", head, null],
    ["what is no text", `* License: CC\u001b[31m0\u202e\n`, "CC [31m0"],
    ["without end", `* License: ${"x".repeat(500)}`, "x".repeat(300)],
  ] as const)
    it(what, () => {
      assert.equal(licenseOf(card), license);
    });
});
