// SPDX-License-Identifier: Apache-2.0
// Report pages in the Chromium of this machine. Everything that must never happen in such a page is written down while
// it is open: an error on its console, and a request to anything but the file itself.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";

export const DESKTOP = { width: 1440, height: 900 };
export const PHONE = { width: 390, height: 844 };
const PATIENCE = 60_000; // ms; only against waiting for ever

/** The browser's path; null: there is none. */
export function findChromium() {
  const runnable = (path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  if (process.env.CHROMIUM) return runnable(process.env.CHROMIUM) ? process.env.CHROMIUM : null;
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    for (const folder of (process.env.PATH ?? "").split(delimiter)) {
      if (folder && runnable(join(folder, name))) return join(folder, name);
    }
  }
  return null;
}

export async function launch() {
  const executablePath = findChromium();
  if (!executablePath) throw new Error("no Chromium: set CHROMIUM, or have chromium or google-chrome on PATH");
  const { chromium } = await import("playwright-core");
  const args = ["--disable-dev-shm-usage", "--force-color-profile=srgb"];
  if (process.getuid?.() === 0) args.push("--no-sandbox"); // which Chromium refuses to use as root
  return chromium.launch({ executablePath, headless: true, args, timeout: PATIENCE });
}

/** Runs in the page before its own scripts: when it was ready, and which tasks were long. */
function watch() {
  window.seen = { ready: 0, painted: 0, longTasks: [] };
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.seen.longTasks.push({ at: task.startTime, ms: task.duration });
  }).observe({ type: "longtask", buffered: true });
  const ready = new MutationObserver(() => {
    if (!document.documentElement.hasAttribute("data-ready")) return;
    ready.disconnect();
    window.seen.ready = performance.now();
    requestAnimationFrame(() => setTimeout(() => (window.seen.painted = performance.now())));
  });
  ready.observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
}

export class Opened {
  constructor(context, page, url) {
    Object.assign(this, { context, page, url, errors: [], requests: [] });
    page.on("console", (m) => {
      if (m.type() === "error") this.errors.push(`console: ${m.text()}`);
    });
    page.on("pageerror", (e) => this.errors.push(`uncaught: ${e.message}`));
    context.on("request", (r) => {
      if (r.url().split("#")[0] !== url && !/^(blob|data|about):/.test(r.url())) this.requests.push(r.url());
    });
  }

  /** What must not have happened. */
  get faults() {
    return [...this.errors, ...this.requests.map((r) => `asked for ${r}`)];
  }

  /** The same, and forgotten: the next part of a test begins anew. */
  takeFaults() {
    const { faults } = this;
    this.errors.length = this.requests.length = 0;
    return faults;
  }

  async goto(hash = "", { settle = true } = {}) {
    await this.page.goto("about:blank"); // another hash alone would not read the file again
    await this.page.goto(this.url + hash);
    await this.page.waitForSelector("html[data-ready], html[data-failed]", { state: "attached" });
    if (await this.page.$("html[data-failed]")) throw new Error(await this.page.innerText("#app"));
    if (settle) await this.settle();
  }

  views() {
    return this.page.$$eval("[role=tab]", (tabs) => tabs.map((t) => t.id.replace(/^tab-/, "")));
  }

  async show(view) {
    await this.page.click(`#tab-${view}`);
    await this.page.waitForSelector(`#tab-${view}[aria-selected=true]`);
    await this.settle();
  }

  /** Until the picture stands still: what is drawn per frame is drawn, and a worker's answer is shown. */
  async settle() {
    let before = null;
    for (let i = 0; i < 100; i++) {
      const now = await this.picture();
      if (now === before) return now;
      before = now;
    }
    throw new Error("the page never stands still");
  }

  /** A number that changes with anything seen in the view: text, attributes, pixels of canvases. */
  picture() {
    return this.page.evaluate(async () => {
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 10)));
      for (let i = 0; i < 3; i++) await frame();
      while (document.querySelector("#view .graph-busy:not([hidden])")) await frame(); // a worker computes
      const main = document.getElementById("view");
      let hash = 0;
      const add = (v) => (hash = (Math.imul(hash, 31) + v) | 0);
      const text = main.outerHTML;
      for (let i = 0; i < text.length; i++) add(text.charCodeAt(i));
      for (const canvas of main.querySelectorAll("canvas")) {
        const context = canvas.width && canvas.height ? canvas.getContext("2d") : null;
        if (!context) continue;
        const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
        const words = new Uint32Array(data.buffer);
        for (let i = 0; i < words.length; i++) add(words[i]);
      }
      return hash;
    });
  }

  /** What a person would recognise: the words, the first rows of tables, and pictures with coarse pixels. */
  impression() {
    return this.page.evaluate(() => {
      const words = (root) => {
        const copy = root.cloneNode(true);
        for (const e of copy.querySelectorAll("[role=status], [aria-live]")) e.remove(); // said, not seen
        for (const e of copy.querySelectorAll("[aria-rowindex]")) if (Number(e.getAttribute("aria-rowindex")) > 12) e.remove();
        return copy.textContent;
      };
      const coarse = (canvas) => {
        const small = document.createElement("canvas");
        [small.width, small.height] = [48, 27];
        const context = small.getContext("2d");
        context.imageSmoothingQuality = "high";
        context.drawImage(canvas, 0, 0, small.width, small.height);
        return [...context.getImageData(0, 0, small.width, small.height).data];
      };
      const main = document.getElementById("view");
      const canvases = [...main.querySelectorAll("canvas")].filter((c) => c.width && c.height);
      return { view: words(main), details: words(document.querySelector("aside")), pictures: canvases.map(coarse) };
    });
  }

  /** The number of colours in the view's most colourful canvas; 0: it has none. */
  colours() {
    return this.page.evaluate(() => {
      let most = 0;
      for (const canvas of document.querySelectorAll("#view canvas")) {
        const context = canvas.width && canvas.height ? canvas.getContext("2d") : null;
        if (!context) continue;
        const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
        most = Math.max(most, new Set(new Uint32Array(data.buffer)).size);
      }
      return most;
    });
  }

  /** The address behind "#": { view, params }. It is written a moment after a change. */
  async address() {
    await this.page.waitForTimeout(250);
    const hash = await this.page.evaluate(() => location.hash.slice(1));
    const at = hash.indexOf("?");
    return { hash, view: at < 0 ? hash : hash.slice(0, at), params: new URLSearchParams(at < 0 ? "" : hash.slice(at + 1)) };
  }

  text(selector = "#view") {
    return this.page.evaluate((s) => [...document.querySelectorAll(s)].map((e) => e.textContent).join("\n"), selector);
  }

  /** The file that a button saves: { name, bytes }. */
  async download(button) {
    const [download] = await Promise.all([this.page.waitForEvent("download"), button.click()]);
    const parts = [];
    for await (const part of await download.createReadStream()) parts.push(part);
    return { name: download.suggestedFilename(), bytes: Buffer.concat(parts) };
  }

  /** What is in an SVG file, parsed in a page of its own, which has no policy: { root, names, handlers, words }. */
  async parseSvg(text) {
    this.other ??= await this.context.browser().newContext(); // a window of its own: this page stays in sight
    this.blank ??= await this.other.newPage();
    return this.blank.evaluate((source) => {
      const made = new DOMParser().parseFromString(source, "image/svg+xml");
      const all = [...made.querySelectorAll("*")];
      return {
        root: made.documentElement.localName,
        names: all.map((e) => e.localName),
        handlers: all.flatMap((e) => [...e.attributes].map((a) => a.name).filter((name) => /^on/i.test(name))),
        words: made.documentElement.textContent.trim(),
      };
    }, text);
  }

  async close() {
    await this.other?.close();
    await this.context.close();
  }
}

/** A page in a window of its own, ready. `hash`: "#timeline". */
export async function open(browser, file, { hash = "", size = DESKTOP, dark = false, touch = false, goto = true } = {}) {
  const context = await browser.newContext({ viewport: size, colorScheme: dark ? "dark" : "light", hasTouch: touch, acceptDownloads: true });
  context.setDefaultTimeout(PATIENCE);
  await context.addInitScript(watch);
  const opened = new Opened(context, await context.newPage(), pathToFileURL(file).href);
  if (goto) await opened.goto(hash);
  return opened;
}
