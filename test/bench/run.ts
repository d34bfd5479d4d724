// `npm run bench`: what the gateway costs beside a bare proxy; `-- chat`: beside a real model's process; `-- edit`: how soon an edit
// is in force; `-- life`: start, stop and idle streams; `-- pull`: pulls beside curl and aria2c; `-- drops`: what becomes of answers
// under way, beside the engine's own router; `-- scan`: the scans of a large request and of a large cache.
const [what = "speed"] = process.argv.slice(2);

if (what === "speed") await import("./wire/speed.ts");
else if (what === "chat") await import("./bench.ts");
else if (what === "life") await import("./life.ts");
else if (what === "pull") await import("./pull.ts");
else if (what === "drops") await import("./drops.ts");
else if (what === "edit") await import("./edit.ts");
else if (what === "scan") await import("./scan.ts");
else {
  console.error(`there is no benchmark ${what}: speed, chat, edit, life, pull, drops and scan are known`);
  process.exitCode = 1;
}
