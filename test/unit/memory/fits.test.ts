// Whether a model fits, what would make it fit, and how that is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryText } from "../../../src/core/memory-text.ts";
import { fitsFact } from "../../../src/memory/fits.ts";
import { fitsIn, leftBeside, type Need, needOf } from "../../../src/memory/need.ts";
import { largestContext } from "../../../src/memory/remedy.ts";

const gibibyte = 1024 ** 3;
const limits = new Map([
  ["Host", 7.5 * gibibyte],
  ["CUDA0", 8 * gibibyte],
]);

function need(bytes: Readonly<Record<string, number>>): Need {
  const parts = Object.entries(bytes).map(
    ([device, size]) => [device, { model: size * gibibyte, context: 0, compute: 0 }] as const,
  );
  const found = needOf(new Map(parts), null);
  assert.ok(found);
  return found;
}

test("sizes of memory", () => {
  const texts = [0, 300, 999.6, 1024, 5222, 24_000].map((size) => memoryText(size * 1024 ** 2));
  assert.deepEqual(texts, ["0 MiB", "300 MiB", "1.0 GiB", "1.0 GiB", "5.1 GiB", "23 GiB"]);
});

test("a device has a limit by its name, ignoring case; without one it has none", () => {
  assert.equal(fitsIn(new Map([["cuda0", 9 * gibibyte]]), limits), false);
  assert.equal(fitsIn(new Map([["Vulkan1", 99 * gibibyte]]), limits), true);
});

test("what pinned models have is not left for others", () => {
  const pinned = [new Map([["Host", 3 * gibibyte]]), new Map([["Host", 0.5 * gibibyte]])];
  const left = leftBeside(limits, pinned);
  assert.deepEqual(left, new Map([...limits, ["Host", 4 * gibibyte]]));
  const { message } = fitsFact(need({ Host: 5.1 }), left, () => null, { where: "the pinned models leave" });
  assert.equal(message, "It needs 5.1 GiB of main memory (estimated), where the pinned models leave 4.0 GiB.");
});

test("messages have the numbers and the remedy", () => {
  const told = (bytes: Readonly<Record<string, number>>, remedy: Parameters<typeof fitsFact>[2]) =>
    fitsFact(need(bytes), limits, remedy).message;
  const none = () => undefined;
  assert.equal(told({ Host: 5.1 }, none), "It needs 5.1 GiB of 7.5 GiB (estimated).");
  assert.equal(
    told({ CUDA0: 5, Host: 1 }, none),
    "It needs 5.0 GiB of 8.0 GiB of CUDA0 and 1.0 GiB of 7.5 GiB of main memory (estimated).",
  );
  const large = "It needs 9.0 GiB of main memory (estimated), where models may take 7.5 GiB";
  assert.equal(told({ Host: 9 }, none), `${large}.`);
  assert.equal(
    told({ Host: 9 }, () => ({ context: 12_288, quantized: 24_576 })),
    `${large}: a context of 12288 would fit; with cache-type-k and cache-type-v q8_0, 24576.`,
  );
  assert.equal(
    told({ Host: 9 }, () => ({ context: null, quantized: null })),
    `${large}: no context would fit.`,
  );
});

test("the largest context in steps of 1024 that fits, in few questions", async () => {
  for (const [room, expected] of [
    [12, 12_288],
    [0.5, null],
    [1, 1024],
    [99, 65_536],
  ] as const) {
    let asked = 0;
    const ask = async (tokens: number) => {
      asked++;
      return new Map([["Host", tokens]]);
    };
    assert.equal(await largestContext(ask, new Map([["Host", room * 1024]]), 65_536), expected);
    assert.ok(asked <= 5, `${asked} questions`);
  }
});
