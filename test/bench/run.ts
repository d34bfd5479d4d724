// `npm run bench`: what the gateway costs beside the model's own process; `-- life`: start, stop and
// idle streams; `-- pull`: pulls beside curl and aria2c.
const [what = "chat"] = process.argv.slice(2);

if (what === "chat") await import("./bench.ts");
else if (what === "life") await import("./life.ts");
else if (what === "pull") await import("./pull.ts");
else {
  console.error(`there is no benchmark ${what}: chat, life and pull are known`);
  process.exitCode = 1;
}
