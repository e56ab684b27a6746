// SPDX-License-Identifier: Apache-2.0
// How fast the page is:  SONDE_PROGRAM=… node speed.mjs
// Prints each figure beside what it shall be; speed.test.mjs holds it to five times that, for machines that are busy.
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { launch, open } from "./page.mjs";
import { emptyPage, folder, MARK } from "./profiles.mjs";
import { writeSynthetic } from "./synthetic.mjs";

const SMALL = 100_000;
const LARGE = 5_000_000;

/** A page with so many spans or steps, made once. */
const made = new Map();
function pageOf(spans, steps) {
  const key = `speed-${spans}-${steps}`;
  if (!made.has(key)) {
    const file = join(folder(), `${key}.html`);
    made.set(key, writeSynthetic(file, { spans, steps }).then(() => file));
  }
  return made.get(key);
}

/** Opens a page and leaves it as soon as it is there; `act` measures. */
async function using(browser, file, hash, act) {
  const o = await open(browser, file, { goto: false });
  try {
    await o.goto(hash, { settle: false });
    await o.page.waitForFunction(() => window.seen.painted > 0);
    return await act(o);
  } finally {
    await o.close();
  }
}

/** ms from the start of the navigation until the profile is on the screen. */
const opening = (browser, file, hash = "") => using(browser, file, hash, (o) => o.page.evaluate(() => window.seen.painted));

/** Runs in the page: ms from each act to the frame that shows it, the wait for that frame included. */
async function timedActs([acts, times]) {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const view = document.getElementById("view");
  const does = {
    key: (key) => (view.querySelector("canvas") ?? view).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })),
    click: (selector, k) => {
      const all = view.querySelectorAll(selector);
      all[k % all.length].click();
    },
    type: (text, k) => {
      const field = view.querySelector("input[type=search]");
      field.value = text.slice(0, 1 + (k % text.length));
      field.dispatchEvent(new Event("input", { bubbles: true }));
    },
  };
  const taken = [];
  for (let k = 0; k < times; k++) {
    for (const [what, value] of acts) {
      await drawn();
      const start = performance.now();
      does[what](value, k);
      await drawn();
      taken.push(performance.now() - start);
    }
  }
  return taken.sort((a, b) => a - b);
}

async function interactions(browser, file) {
  const acts = [
    ["zoom the timeline", "#timeline", [["key", "w"], ["key", "s"]]],
    ["pan the timeline", "#timeline", [["key", "d"], ["key", "a"]]],
    ["pan all of the timeline", "#timeline", [["key", "0"], ["key", "w"], ["key", "d"]]],
    ["select a span", "#timeline", [["key", "ArrowRight"]]],
    ["search the timeline", "#timeline", [["type", "softmax"]]],
    ["select a row", "#operators?by=node", [["click", "[role=row][aria-rowindex]"]]],
    ["sort a table", "#operators?by=node", [["click", "[role=columnheader] button"]]],
    ["filter a table", "#operators?by=node", [["type", "softmax"]]],
    ["zoom the graph", "#graph", [["key", "+"], ["key", "-"]]],
    ["pan the graph", "#graph", [["key", "d"], ["key", "a"]]],
  ];
  const figures = [];
  for (const [name, hash, list] of acts) {
    const taken = await using(browser, file, hash, async (o) => {
      await o.page.waitForTimeout(300);
      return o.page.evaluate(timedActs, [list, 12]);
    });
    figures.push({ name, value: taken[Math.floor(taken.length / 2)], worst: taken[taken.length - 1], most: 50, unit: "ms" });
  }
  return figures;
}

/** A graph: until it is laid out and drawn, and the longest time in which the page did not answer. */
async function layout(browser, steps, hash) {
  const file = await pageOf(5 * steps, steps);
  return using(browser, file, "", async (o) => {
    const found = await o.page.evaluate(async (where) => {
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      await frame();
      const start = performance.now();
      location.hash = where;
      do await frame();
      while (!document.querySelector("#view .graph-busy[hidden]"));
      await frame();
      const ms = performance.now() - start;
      await new Promise((done) => setTimeout(done, 500)); // long tasks are told late
      const tasks = window.seen.longTasks.filter((task) => task.at + task.ms > start);
      return { ms, longest: Math.max(0, ...tasks.map((task) => task.ms)) };
    }, hash);
    return found;
  });
}

/** All figures: [{ name, value, most, unit, worst? }]. `large`: also the five million, which take a minute to make. */
export async function measure({ large = true } = {}) {
  const browser = await launch();
  const figures = [];
  const put = (name, value, most, unit) => figures.push({ name, value, most, unit });
  try {
    const shell = (await emptyPage()).replace(MARK, "");
    put("page without data, compressed", gzipSync(shell, { level: 9 }).length / 1000, 250, "KB");
    const small = await pageOf(SMALL, 90);
    await opening(browser, small); // the browser's own first page takes longer
    put("100,000 spans: open", await opening(browser, small), 1000, "ms");
    put("100,000 spans: open the timeline", await opening(browser, small, "#timeline"), 1000, "ms");
    figures.push(...(await interactions(browser, small)).map((f) => ({ ...f, name: `100,000 spans: ${f.name}` })));
    for (const [steps, hash, name] of [[2000, "#graph", "2,000 steps"], [2000, "#graph?open=all", "2,000 steps, all open"], [8000, "#graph", "8,000 steps"], [8000, "#graph?open=all", "8,000 steps, all open"]]) {
      const { ms, longest } = await layout(browser, steps, hash);
      put(`graph of ${name}: laid out`, ms, steps === 2000 ? 3000 : 12_000, "ms");
      put(`graph of ${name}: longest task`, longest, steps === 2000 ? 200 : 800, "ms");
    }
    if (large) {
      const file = await pageOf(LARGE, 90);
      put("5 million spans: size of the file", statSync(file).size / 1e6, 100, "MB");
      put("5 million spans: open", await opening(browser, file), 10_000, "ms");
      put("5 million spans: open the timeline", await opening(browser, file, "#timeline"), 10_000, "ms");
      put("5 million spans: open the flame graph", await opening(browser, file, "#flame"), 10_000, "ms");
      const taken = await using(browser, file, "#timeline", (o) => o.page.evaluate(timedActs, [[["key", "0"], ["key", "w"], ["key", "d"], ["key", "s"]], 6]));
      figures.push({ name: "5 million spans: zoom and pan", value: taken[Math.floor(taken.length / 2)], worst: taken[taken.length - 1], most: 50, unit: "ms" });
    }
  } finally {
    await browser.close();
  }
  return figures;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const digits = (v) => (v >= 100 ? v.toFixed(0) : v.toPrecision(3));
  for (const f of await measure()) {
    const worst = f.worst === undefined ? "" : `  (worst ${digits(f.worst)})`;
    console.log(`${f.value <= f.most ? "      " : "ABOVE "}${f.name.padEnd(52)} ${digits(f.value).padStart(7)} ${f.unit}, at most ${f.most}${worst}`);
  }
}
