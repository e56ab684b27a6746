// SPDX-License-Identifier: Apache-2.0
// What a person sees first: names that are told apart, in any width; the order of verdicts; what stands in boxes; where
// pictures begin. On a profile whose names are those of a real network, long and alike.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, PHONE } from "./page.mjs";
import { folder, onnxruntimeProfile, profileOf, pytorchProfile } from "./profiles.mjs";
import { writeSynthetic } from "./synthetic.mjs";

const STEPS = 60;
const part = (k) => `features.${Math.floor(k / 6)}`;
const alike = (k) => `/features/${part(k)}/${part(k)}.${k % 6}/block/block.0/block.0.0/BatchNormalization_output_0_nchwc`;
/** Every seventh step only changes the layout of what the one before it made, and has no name. */
const reorders = (k) => k % 7 === 3;

const FINDINGS = [
  ["good", "all is well", 0],
  ["slow", "unknown gain", 0],
  ["note", "small gain", 0.02],
  ["note", "large gain", 0.4],
  ["good", "fine, too", 0],
].map(([severity, topic, gain]) => ({ severity, topic, finding: "said", evidence: "seen", remedy: "mend it", ...(gain ? { gain } : {}) }));

function renamed({ header }) {
  header.findings = FINDINGS;
  header.steps.forEach((step, k) => {
    const name = reorders(k) ? "" : alike(k);
    Object.assign(step, { name, origins: [{ name: reorders(k) ? alike(k - 1) : name, op: step.op }], ...(reorders(k) ? { op: "[Reorder]", post_op: "" } : {}) });
    for (const t of [...step.inputs, ...step.outputs]) if (!t.constant) t.name = `tensor_of_a_long_name_${t.name}`;
  });
  for (const row of header.rows.node) if (!row.bracket) row.node = header.steps[row.step].origins[0].name;
  for (const life of header.lives) life.name = `${alike(life.first)}/${life.name}`;
}

const file = join(folder(), "alike.html");
let browser, known;
before(async () => {
  known = await writeSynthetic(file, { spans: 2000, steps: STEPS, change: renamed });
  browser = await launch();
});
after(() => browser?.close());

async function using(page, hash, act, options = {}) {
  const o = await open(browser, page, { hash, ...options });
  try {
    await act(o);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
}
const svgOf = async (o) => (await o.download(o.page.locator("#view button", { hasText: "SVG" }).last())).bytes.toString("utf8");
const textsOf = (svg) => [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map((found) => found[1]);

for (const size of [undefined, PHONE]) {
  test(`the slowest steps have names that are told apart${size ? " on a phone" : ""}`, () =>
    using(file, "#summary", async (o) => {
      const names = await o.page.$$eval(".steps b.who", (all) => all.map((e) => e.textContent));
      assert.equal(names.length, 10);
      const whole = await o.page.$$eval(".steps .step", (all) => all.map((e) => e.title));
      assert.equal(new Set(names).size, new Set(whole).size, names.join("\n"));
      const common = (await o.page.$$eval(".steps > p.faint", (all) => all.map((e) => e.textContent)))[0];
      for (const name of names) assert.ok(name.length <= 40 && !name.startsWith("/features/features."), name);
      assert.ok(!common.startsWith("all in") || names.every((name) => !name.startsWith(common.slice(7))), "a common beginning stands once");
      const ends = await o.page.$$eval(".steps b.who .kept > :last-child", (all) => all.map((e) => [e.scrollWidth, e.clientWidth, e.textContent]));
      for (const [wants, has, text] of ends) assert.ok(wants <= has + 1 || text.length > 24, `the end of "${text}" is in sight`);
    }, size ? { size } : {}));
}

test("verdicts come in the order of what they gain, and good ones are folded", () =>
  using(file, "#summary", async (o) => {
    const card = o.page.locator("section[aria-label='The doctor’s verdicts']");
    assert.deepEqual(await card.locator("> .finding h3").allTextContents(), ["large gain", "small gain", "unknown gain"]);
    assert.equal(await card.locator("details h3").first().isVisible(), false);
    await card.locator("summary").click();
    assert.deepEqual(await card.locator("details h3").allTextContents(), ["all is well", "fine, too"]);
    assert.equal(await card.locator("details h3").first().isVisible(), true);
  }));

test("tables by node show the end of a name and keep the whole one", () =>
  using(file, "#operators?by=node", async (o) => {
    const cells = await o.page.$$eval(".trow .kept", (all) => all.map((e) => ({ shown: e.textContent, title: e.parentElement.title, end: e.lastElementChild.getBoundingClientRect().right <= e.parentElement.parentElement.getBoundingClientRect().right + 1 })));
    assert.ok(cells.length > 10);
    for (const { shown, title, end } of cells) assert.ok(end && title.startsWith("/features/") && title.endsWith("nchwc") && shown.endsWith("nchwc"), `${shown} for ${title}`);
    const csv = (await o.download(o.page.locator("#view button", { hasText: "CSV" }))).bytes.toString("utf8");
    assert.ok(csv.includes(alike(1)), "a file has whole names");
  }));

test("boxes of the graph have names that are told apart, also steps without one", () =>
  using(file, "#graph?open=all", async (o) => {
    const texts = textsOf(await svgOf(o));
    const after = (title) => texts.flatMap((text, i) => (text === title ? [texts[i + 1]] : []));
    const reordered = after("[Reorder]");
    const count = [...Array(STEPS).keys()].filter(reorders).length;
    assert.equal(reordered.length, count);
    for (const name of reordered) assert.match(name, /features|…/, "what is reordered");
    assert.equal(new Set(reordered).size, count, reordered.join("\n"));
  }));

test("steps without a name are in the group of what they work on", () =>
  using(file, "#graph?open=none", async (o) => {
    const texts = textsOf(await svgOf(o));
    assert.equal(texts.filter((text) => text === "[Reorder]").length, 0, texts.join("\n"));
    const groups = texts.filter((text) => /features\.\d+$/.test(text));
    assert.equal(groups.length, STEPS / 6, texts.join("\n"));
  }));

for (const kind of ["training", "cnn"]) {
  test(`groups of a ${kind === "training" ? "training graph" : "network"} that are collapsed are connected`, async () => {
    const { page } = await profileOf(kind);
    await using(page, "#graph", async (o) => {
      await o.page.locator("#view button", { hasText: "Collapse all" }).click();
      await o.settle();
      const svg = await svgOf(o);
      const boxes = [...svg.matchAll(/<rect [^>]*/g)].length;
      const arrows = [...svg.matchAll(/<(?:polyline|path) [^>]*/g)].length;
      const groups = textsOf(svg).filter((text) => /^\d[\d\u202f]* steps?$/.test(text)).length;
      assert.ok(groups >= 1 && boxes > groups, `${groups} groups`);
      assert.ok(arrows >= 2 * groups, `${arrows} lines between ${groups} groups`);
      await o.page.locator("#view button", { hasText: "Expand all" }).click();
      await o.settle();
      assert.equal(textsOf(await svgOf(o)).filter((text) => /^\d[\d\u202f]* steps?$/.test(text)).length, 0);
    });
  });
}

for (const size of [undefined, PHONE]) {
  test(`the timeline opens on one typical run and fills its height${size ? " on a phone" : ""}`, () =>
    using(file, "#timeline", async (o) => {
      const shown = await o.page.$eval(".tl-run", (e) => Number(e.value) - 1);
      const { p50 } = known.header.summary.wall;
      const off = (run) => Math.abs(known.times.wall[run + 1] - p50);
      const best = Math.min(...[...Array(known.runs - 1).keys()].map(off));
      assert.equal(off(shown), best, `run ${shown + 1} is the nearest to the median`);
      await o.page.keyboard.press("w"); // the address has the window from the first change on
      const [from, to] = (await o.address()).params.get("t").split("-").map(Number);
      const wall = known.times.wall[shown + 1];
      assert.ok(1.4 * (to - from) > wall && to - from < wall, "the window was one run");
      const { height } = await o.page.locator(".tl-stage").boundingBox();
      const lines = [...(await svgOf(o)).matchAll(/<rect x="[\d.]+" y="([\d.]+)" width="\d{3,}[\d.]*" height="1\.00"/g)].map((found) => Number(found[1]));
      const bottom = Math.max(...lines); // the base of the last track
      assert.ok(bottom > 0.9 * height && bottom <= height, `the last track ends at ${bottom} of ${height}`);
      // Collapsed lanes leave their room to the others, and nothing runs out of the window.
      await o.page.locator(".tl-fold").first().click();
      const after = await o.page.$$eval(".tl-fold", (all) => Math.max(...all.map((e) => parseFloat(e.style.top))));
      assert.ok(after < height, `${after} of ${height}`);
    }, size ? { size } : {}));
}

test("lanes that do not fit keep their height and scroll", async () => {
  const many = join(folder(), "many-lanes.html");
  await writeSynthetic(many, {
    spans: 2000, steps: STEPS,
    change({ header, columns }) {
      header.threads = Array.from({ length: 80 }, (_, k) => ({ id: k + 1, os_tid: k + 1, name: `worker ${k}` }));
      const { value } = columns[3];
      columns[3].value = (i) => (value(i) ? 1 + (i % 79) : 0);
    },
  });
  await using(many, "#timeline", async (o) => {
    const heights = await o.page.$$eval(".tl-fold", (all) => all.map((e) => parseFloat(e.style.height)));
    assert.ok(heights.length > 40 && heights.every((h) => h >= 18));
  });
});

test("boxes of lives hold name and size, or nothing", () =>
  using(file, "#memory", async (o) => {
    const texts = textsOf(await svgOf(o));
    const sizes = texts.filter((text) => /64\.0\u202fKiB$/.test(text));
    for (const text of sizes) assert.match(text, /^(\S.*\S )?64\.0\u202fKiB$/);
    const others = texts.filter((text) => /nchwc|…/.test(text) && !/KiB$/.test(text));
    for (const text of others) assert.match(text, /^…?\/(.*\/)?t\d+$/, "a whole end of a name, above its size");
    const zoomed = o.page.locator("#view .memory-part button", { hasText: "+" });
    for (let k = 0; k < 3; k++) await zoomed.click();
    const near = textsOf(await svgOf(o)).filter((text) => text.includes("64.0\u202fKiB"));
    assert.ok(near.length > 0, "wide boxes say what they are");
  }));

test("pages of other programs' profiles carry the name of their file", async () => {
  for (const [made, name] of [[onnxruntimeProfile, "onnxruntime.json"], [pytorchProfile, "pytorch.json"]]) {
    const { page } = await made();
    await using(page, "#summary", async (o) => {
      assert.equal(await o.page.textContent("h1"), name);
      assert.equal(await o.page.title(), `${name} – sonde`);
    });
  }
});

test("a page of a run that goes on asks at once, and often until there are figures", async () => {
  const { page } = await profileOf("cnn");
  const text = readFileSync(page, "utf8").replace("<html ", "<html data-live ").replace("connect-src 'none'", "connect-src 'self'");
  const empty = join(folder(), "before.html");
  await writeSynthetic(empty, {
    spans: 60, steps: 3,
    change({ header, columns }) {
      Object.assign(header.summary, { iterations: 0 });
      header.counts.runs = columns[17].n = columns[18].n = 0;
    },
  });
  const data = (html) => Buffer.from([...html.matchAll(/<script type="application\/x-sonde-profile"[^>]*>([^<]*)</g)].pop()[1], "base64");
  const before = readFileSync(empty, "utf8").replace("<html ", "<html data-live ").replace("connect-src 'none'", "connect-src 'self'");
  let asked = 0;
  const server = createServer((request, answer) => {
    if (!request.url.startsWith("/data")) return answer.setHeader("Content-Type", "text/html; charset=utf-8").end(before);
    asked++;
    if (asked < 5) return answer.writeHead(304).end();
    answer.setHeader("ETag", '"2"');
    answer.end(data(text));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const context = await browser.newContext();
  try {
    const tab = await context.newPage();
    const pauses = [];
    await tab.exposeFunction("paused", (ms) => pauses.push(ms));
    await tab.addInitScript(() => {
      const plain = window.setTimeout;
      window.setTimeout = (act, ms, ...more) => (ms >= 200 && ms !== 10_000 && void window.paused(ms), plain(act, ms, ...more));
    });
    await tab.goto(`http://127.0.0.1:${server.address().port}/?token=x`);
    await tab.waitForFunction(() => /median of 20 runs/.test(document.querySelector("header.top")?.textContent ?? ""));
    await tab.waitForFunction(() => document.querySelector("header.top .good"));
    assert.deepEqual(pauses.slice(0, 4), [200, 200, 200, 200]);
    assert.ok(asked >= 5);
  } finally {
    await context.close();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

test("rates of Winograd convolutions are said to be of direct arithmetic", async () => {
  const winograd = join(folder(), "winograd.html");
  await writeSynthetic(winograd, {
    spans: 400,
    steps: 12,
    change: ({ header }) => {
      for (const rows of Object.values(header.rows)) for (const row of rows) if (row.op === "Conv") row.direct = true;
    },
  });
  for (const [page, told] of [[winograd, true], [file, false]]) {
    for (const view of ["operators", "roofline"]) {
      await using(page, `#${view}`, async (o) => assert.equal(/Winograd convolutions are of direct arithmetic/.test(await o.text()), told, view));
    }
  }
});
