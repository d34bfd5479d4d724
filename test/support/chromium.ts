// The real browser for the tests of the status page: Debian's headless Chromium, unpacked with its libraries. No root.
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ignoreAbsent } from "../../src/core/errors.ts";
import { createPrivateApt } from "../../src/engines/install/apt.ts";
import { runTool } from "../../src/engines/install/run.ts";
import { packageRoot } from "../../src/settings/settings.ts";

/** An executable that is there already; else it is installed below `state`. */
const given = process.env["MODEL_GATEWAY_TEST_CHROMIUM"];
const home = join(packageRoot, "state", "chromium");
const run = { environment: process.env, signal: new AbortController().signal };
const program = "usr/lib/chromium/chromium-headless-shell";

/** Drivers of graphics cards, which a headless browser does not load: 49 MB of the download with what they need. */
const drivers = "mesa-libgallium";

/** Installs it where there is none: 130 MB to download, as its packages name most of a desktop's libraries. */
export async function provideChromium(onProgress: (text: string) => void): Promise<void> {
  if (given !== undefined || (await readFile(join(home, "libraries"), "utf8").catch(ignoreAbsent)) !== null) return;
  onProgress("installing chromium-headless-shell for the tests");
  const staging = `${home}.${process.pid}`;
  try {
    const packages = ["chromium-headless-shell", "fonts-dejavu-core", "patchelf"];
    const apt = await createPrivateApt(join(staging, "apt"), run);
    // As if they were there already.
    const architecture = (await runTool("dpkg", ["--print-architecture"], run)).trim();
    const unneeded = (await apt.resolve(packages)).filter((each) => each.package === drivers);
    const installed = unneeded.map(
      ({ package: name, version }) =>
        `Package: ${name}\nStatus: install ok installed\nMaintainer: none\nArchitecture: ${architecture}\nVersion: ${version}\nDescription: none\n`,
    );
    await writeFile(join(staging, "apt", "status"), installed.join("\n"));
    const debs = await apt.download(packages, () => undefined);
    const all = join(staging, "all");
    for (const deb of debs) await runTool("dpkg-deb", ["-x", deb, all], run);
    await keepNeeded(all, join(staging, "home"));
    await rename(join(staging, "home"), home);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** The browser's own folder, the libraries that it loads, their loader, and a font: a fifth of what was unpacked. */
async function keepNeeded(all: string, folder: string): Promise<void> {
  const folders = await readdir(join(all, "usr", "lib"));
  const system = join(all, "usr", "lib", folders.find((name) => name.endsWith("-linux-gnu")) ?? "");
  const loader = (await readdir(system)).find((name) => name.startsWith("ld-linux")) ?? "";
  // The system's own may be too old.
  const unpacked = (...args: string[]): Promise<string> =>
    runTool(join(system, loader), ["--library-path", `${system}:${join(system, "pulseaudio")}`, ...args], run);
  const listing = await unpacked("--list", join(all, program));
  const libraries = [...listing.matchAll(/ => (\/\S+)/g)].map(([, path = ""]) => path);
  await mkdir(join(folder, "lib"), { recursive: true });
  for (const path of [join(system, loader), ...libraries]) await copyFile(path, join(folder, "lib", basename(path)));
  await mkdir(join(folder, "usr", "lib"), { recursive: true });
  const programs = join(folder, "usr", "lib", "chromium");
  await rename(join(all, "usr", "lib", "chromium"), programs);
  // Only checks calls of Vulkan.
  await rm(join(programs, "libVkLayer_khronos_validation.so"), { force: true });
  await rename(join(all, "usr", "share", "fonts"), join(folder, "fonts"));
  // A loader has no relative path.
  await unpacked(join(all, "usr/bin/patchelf"), "--set-interpreter", join(home, "lib", loader), join(folder, program));
  await writeFile(
    join(folder, "fonts.conf"),
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${join(home, "fonts")}</dir>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias></fontconfig>\n`,
  );
  // Last: the sign that it is whole.
  await writeFile(join(folder, "libraries"), libraries.join("\n"));
}

/** How it is started. */
export function chromiumLaunch() {
  const environment = { ...process.env, LD_LIBRARY_PATH: join(home, "lib"), FONTCONFIG_FILE: join(home, "fonts.conf") };
  return {
    executablePath: given ?? join(home, program),
    args: ["--no-sandbox", "--disable-gpu"],
    env: given === undefined ? environment : process.env,
  };
}
