// `npm run bench`: what the gateway costs beside a bare proxy; `-- chat`: beside the real engine's own router; `-- busy`: beside a pull; `-- edit`: how soon an edit
// is in force; `-- life`: start, stop and idle streams; `-- pull`: pulls beside curl and aria2c; `-- drops`: what becomes of answers
// under way, beside the engine's own router; `-- scan`: the scans of a large request and of a large cache, a scrape; `-- lists`: what is said of 1,000
// models; `-- commands`: how soon a command answers; `-- replicas`: three gateways behind HAProxy, killed, restarted and changed. `--json FILE` writes the figures that have a goal.
import { writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { findings } from "./goals.ts";

const option = process.argv.indexOf("--json");
const [, file] = option < 0 ? [] : process.argv.splice(option, 2);
const [what = "speed"] = process.argv.slice(2);

if (what === "speed") await import("./wire/speed.ts");
else if (what === "chat") await import("./engine.ts");
else if (what === "life") await import("./life.ts");
else if (what === "pull") await import("./pull.ts");
else if (what === "drops") await import("./drops.ts");
else if (what === "busy") await import("./busy.ts");
else if (what === "edit") await import("./edit.ts");
else if (what === "scan") await import("./scan.ts");
else if (what === "commands") await import("./commands.ts");
else if (what === "lists") await import("./lists.ts");
else if (what === "replicas") await import("./replicas.ts");
else {
  console.error(
    `there is no benchmark ${what}: speed, chat, busy, edit, life, pull, drops, scan, lists, commands and replicas are known`,
  );
  process.exitCode = 1;
}

const machine = { node: process.version, processor: cpus()[0]?.model, cores: cpus().length };
if (file !== undefined)
  await writeFile(file, `${JSON.stringify({ what, at: new Date().toISOString(), machine, findings }, null, 2)}\n`);
