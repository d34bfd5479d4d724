// A model cache of 1,000 models in 5,000 files, five shards each, as the scan and the gateway that has a lot to hold meet it.
import { cacheRepo, commitOf, modelHead } from "../support/cache-folder.ts";

const repos = 250;
const tags = ["Q8_0", "Q4_K_M", "Q5_K_M", "Q4_0"] as const;
const shards = 5;

/** Fills the folder; answers with the ids of its models. */
export async function fillCache(cacheDir: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < repos; index++) {
    const name = `acme${index % 10}/model-${index}-GGUF`;
    const { link, main } = cacheRepo(cacheDir, name);
    await main(commitOf("main"));
    for (const tag of tags) {
      ids.push(`${name}:${tag}`);
      for (let shard = 1; shard <= shards; shard++)
        await link(
          commitOf("main"),
          `model-${index}-${tag}-0000${shard}-of-0000${shards}.gguf`,
          modelHead(`${index} ${tag} ${shard}`),
        );
    }
  }
  return ids;
}
