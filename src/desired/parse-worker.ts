// A thread that parses one text of gateway.yaml.
import { parentPort, workerData } from "node:worker_threads";
import { parseSource } from "./parse.ts";

// oxlint-disable-next-line typescript/no-unsafe-argument -- parse-apart.ts is the only one that starts this thread
parentPort?.postMessage(parseSource(workerData));
