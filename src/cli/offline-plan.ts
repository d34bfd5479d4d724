// What a gateway would do if it were started now: reads the document and the world, and changes nothing.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { readIfPresent } from "../desired/atomic-file.ts";
import { type Desired, emptyTree, mergeFile, standingRemovals, toDesired } from "../desired/document.ts";
import { parseSource } from "../desired/parse.ts";
import { readSavedDocument } from "../desired/saved.ts";
import { createEngineSource } from "../engines/engine-source.ts";
import { createRouter } from "../engines/router.ts";
import { openInventory } from "../execute/inventory.ts";
import { openCache } from "../gateway/kept.ts";
import { createSpeech } from "../gateway/speech.ts";
import { createHubClient } from "../hub/client.ts";
import { createObserver } from "../observe/observe.ts";
import { plan } from "../plan/plan.ts";
import type { Settings } from "../settings.ts";
import { planBody } from "../status/report.ts";

export async function offlinePlan(settings: Settings): Promise<object> {
  const { stateDir, cacheDir, configPath, environment } = settings;
  const nothing = (): void => undefined;
  const presetPath = join(stateDir, "router.preset.ini");
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    environment,
    install: false,
    onProgress: nothing,
    onChange: nothing,
  });
  await engine.prepare(new AbortController().signal);
  const router = createRouter({
    presetPath,
    stateDir,
    cacheDir,
    environment,
    startTimeoutMs: 0,
    stopGraceMs: 0,
    reloadTimeoutMs: 0,
    pingMs: 0,
    now: steadyNow,
    onOutput: nothing,
    onChange: nothing,
    warn: nothing,
  });
  const inventory = await openInventory(stateDir, nothing);
  const desired = await documentNow(settings);
  const speech = createSpeech({
    settings,
    hub: createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken, environment }),
    document: () => desired,
    now: steadyNow,
    onOutput: nothing,
    onChange: nothing,
    onFound: nothing,
    warn: nothing,
  });
  const observer = createObserver({
    scanner: openCache(cacheDir, inventory).scanner,
    cacheDir,
    presetPath,
    router,
    inventory: inventory.entries,
    engine,
    speech: speech.observe,
    workers: null,
    onNewEngine: nothing,
  });
  const found = plan(desired, await observer.observe(), {
    now: steadyNow(),
    backoff: new Map(),
    silenceLimitMs: settings.silenceLimitMs,
  });
  return planBody(found, 0, []);

  async function documentNow({ stateDir: folder }: Settings): Promise<Desired> {
    const saved = await readSavedDocument(folder);
    const text = await readIfPresent(configPath);
    if (text === null) return toDesired(saved.tree, saved.removals);
    const parsed = parseSource(text);
    if (!parsed.ok) {
      const [first] = parsed.problems;
      throw new GatewayError(
        "invalid_document",
        `${configPath}:${first?.line ?? 1}:${first?.column ?? 1}: ${first?.message ?? "invalid"}`,
      );
    }
    const tree = mergeFile(saved.tree, saved.applied ?? emptyTree, parsed.tree);
    return toDesired(tree, standingRemovals(saved.removals, tree));
  }
}
