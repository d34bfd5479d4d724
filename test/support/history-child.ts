// Changes the document again and again until it is killed: `node history-child.js STATE-FOLDER`. Generation N has the context size N.
import { openHistory } from "../../src/desired/history/book.ts";
import { openDesiredStore } from "../../src/desired/store.ts";

const options = { stateDir: process.argv[2] ?? "", now: Date.now, warn: () => undefined };
const history = await openHistory(options);
const store = await openDesiredStore({ ...options, generationOf: history.generationOf });
history.follow(store);
for (;;) {
  const generation = store.current().generation + 1;
  await store.change({ kind: "patch", patch: { context: { default: generation } } }, "child");
  process.stdout.write(`${generation}\n`);
}
