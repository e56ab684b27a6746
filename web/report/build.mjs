// SPDX-License-Identifier: Apache-2.0
// Builds the page into one HTML file:  node build.mjs [OUTPUT]        (default: dist/report.html)
// The layout's worker is bundled first and becomes a text inside the page's own script; style and script stand in the
// file, and a Content-Security-Policy allows these two by their hashes and nothing else. A program that saves a
// profile puts it in place of <!--profile-->.
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2] ?? join(here, "dist", "report.html");
const common = { bundle: true, minify: true, write: false, target: "es2022", charset: "utf8", legalComments: "none" };

async function bundle(entry, options = {}) {
  const made = await esbuild.build({ ...common, entryPoints: [join(here, "src", entry)], ...options });
  return made.outputFiles[0].text.trim();
}

const worker = await bundle("layout.worker.ts", { format: "iife" });
const workerText = {
  name: "worker-text",
  setup(build) {
    build.onResolve({ filter: /^worker-text$/ }, () => ({ path: "worker", namespace: "worker-text" }));
    build.onLoad({ filter: /.*/, namespace: "worker-text" }, () => ({
      contents: `export default ${JSON.stringify(worker)};`,
      loader: "js",
    }));
  },
};
// "</script" must not stand inside a script, nor "<!--".
const script = (await bundle("main.ts", { format: "iife", plugins: [workerText] }))
  .replaceAll("</script", "<\\/script")
  .replaceAll("<!--", "<\\!--");
const style = await bundle("style.css", { loader: { ".css": "css" } });
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

const page = (await readFile(join(here, "src", "page.html"), "utf8"))
  .replace("SCRIPT_HASH", () => hash(script))
  .replace("STYLE_HASH", () => hash(style))
  .replace("/*style*/", () => style)
  .replace("/*script*/", () => script);
if (page.split("<!--profile-->").length !== 2) throw new Error("the page must have one place for the profile");
await mkdir(dirname(output), { recursive: true });
await writeFile(`${output}.new`, page);
await rename(`${output}.new`, output); // never half a page, also when two builds meet
const kb = (n) => `${(n / 1000).toFixed(1)} kB`;
console.log(`${output}: ${kb(page.length)}, ${kb(gzipSync(page, { level: 9 }).length)} compressed`);
