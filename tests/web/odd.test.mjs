// SPDX-License-Identifier: Apache-2.0
// Profiles that are unusual but right: runs of an hour and of no time, no measured run, one far outlier, thousands of
// runs per second, no record of the start. No view may fail, and none may claim what the profile does not say.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { tableRows } from "./figures.mjs";
import { launch, open } from "./page.mjs";
import { folder, levelOneProfile } from "./profiles.mjs";
import { writeSynthetic } from "./synthetic.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

/** Every time of a profile that many times as long. */
function stretch({ header, columns }, by) {
  const longer = (object, keys) => keys.forEach((key) => (object[key] *= by));
  longer(header.summary.wall, Object.keys(header.summary.wall).filter((key) => key !== "count"));
  for (const rows of Object.values(header.rows)) for (const row of rows) longer(row, Object.keys(row).filter((key) => key.endsWith("_ns")));
  for (const column of [0, 1, 13, 18].map((k) => columns[k])) {
    const { value } = column;
    column.value = (i) => Math.round(value(i) * by);
  }
}

const ODD = {
  hours: { spans: 400, steps: 12, change: (p) => stretch(p, 2e7) },
  zeros: {
    spans: 60, steps: 3,
    change(p) {
      stretch(p, 0);
      p.header.summary.runs_per_s = 0;
      for (const rows of Object.values(p.header.rows)) for (const row of rows) row.share = row.usual_share = 0;
    },
  },
  unmeasured: {
    spans: 60, steps: 3,
    change({ header, columns, runs }) {
      Object.assign(header.summary, { iterations: 0, warmups: runs, runs_per_s: 0 });
      for (const key of Object.keys(header.summary.wall)) header.summary.wall[key] = 0;
      header.rows = { op: [], node: [], shape: [], kernel: [] };
      for (const step of header.steps) step.rows = [-1, -1, -1, -1];
      header.counts.runs = columns[17].n = columns[18].n = 0;
      columns[8].value = () => 1; // all are warm-ups
    },
  },
  outlier: {
    spans: 400, steps: 12,
    change({ header, columns, runs }) {
      const { value } = columns[18];
      columns[18].value = (i) => value(i) * (i === 3 ? 100 : 1);
      const { wall } = header.summary;
      Object.assign(wall, { max: 100 * wall.max, p99: 80 * wall.max, p999: 99 * wall.max, mean: wall.mean * (1 + 99 / (runs - 1)) });
      header.summary.runs_per_s = 23_353;
    },
  },
  one: { spans: 6, steps: 1 },
  long: {
    spans: 60, steps: 3,
    change({ header }) {
      for (const step of header.steps) step.name = `/features/${"block.".repeat(50)}Conv`;
    },
  },
};
const made = new Map();
const pageOf = async (kind) => {
  const file = join(folder(), `odd-${kind}.html`);
  if (!made.has(kind)) made.set(kind, writeSynthetic(file, ODD[kind]));
  await made.get(kind);
  return file;
};

async function using(file, hash, act) {
  const o = await open(browser, file, { hash });
  try {
    await act(o);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
}
const stats = (o) => o.page.$$eval("#view .stat", (all) => Object.fromEntries(all.map((s) => [s.lastChild.textContent, s.firstChild.textContent])));
const svgOf = async (o, button) => (await o.download(button)).bytes.toString("utf8");

for (const kind of Object.keys(ODD)) {
  test(`every view of an odd profile renders: ${kind}`, async (t) => {
    await using(await pageOf(kind), "", async (o) => {
      for (const view of await o.views()) {
        await t.test(view, async () => {
          await o.show(view);
          assert.doesNotMatch(await o.text(), /could not be drawn|undefined|NaN|Infinity|\[object/);
        });
      }
    });
  });
}

test("an hour is an hour, and the ruler counts in round seconds", async () =>
  using(await pageOf("hours"), "#summary", async (o) => {
    assert.match((await stats(o))["median latency"], /^\d\d\.\d\u202fmin$/);
    await o.show("timeline");
    const svg = await svgOf(o, o.page.locator("#view button", { hasText: "SVG" }));
    assert.match(svg, />\d{2,3}\u202f[05]00\u202fs</);
  }));

test("figures have three digits, counts of bytes have no fractions", async () =>
  using(await pageOf("outlier"), "#summary", async (o) => {
    assert.equal((await stats(o))["throughput"], "23\u202f400\u202fruns/s");
    await using((await levelOneProfile()).page, "#memory", async (level1) => {
      assert.match(await level1.text(), /outputs40\u202fB/);
    });
  }));

test("one far run does not press all others into one bar", async () =>
  using(await pageOf("outlier"), "#summary", async (o) => {
    const card = o.page.locator('section[aria-label="Distribution of the latency"]');
    const bars = await card.locator("svg rect").count();
    assert.ok(bars > 3, `${bars} bars`);
    const text = await card.textContent();
    assert.match(text, /p99 [\d.]+\u202f\S+ ►/, "an arrow: the 99th percentile lies beyond the axis");
    assert.match(text, /The last bar also counts slower ones/);
  }));

test("marks of an axis differ wherever one zooms to", async () => {
  const file = join(folder(), "known-axis.html");
  await writeSynthetic(file, { spans: 3000, steps: 40 });
  for (const window of ["1570000-1612500", "1000000-9000000", "12345000-12346000", "0-200"]) {
    await using(file, `#timeline?t=${window}`, async (o) => {
      const svg = await svgOf(o, o.page.locator("#view button", { hasText: "SVG" }));
      const texts = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</g)];
      const marks = texts.filter(([, x, y, text]) => Number(x) > 170 && Number(y) < 60 && /\d\u202f(ns|µs|ms|s)$/.test(text)).map((m) => m[3]);
      assert.ok(marks.length > 3, `${window}: ${marks}`);
      assert.equal(new Set(marks).size, marks.length, `${window}: ${marks}`);
    });
  }
});

test("without a record of the start nothing is said of the first result", async () =>
  using((await levelOneProfile()).page, "#startup", async (o) => {
    const text = await o.text();
    assert.match(text, /No record of loading/);
    assert.doesNotMatch(text, /to the first result/);
    assert.ok((await stats(o))["first run"]);
  }));

test("a profile without measured runs says how to get some", async () =>
  using(await pageOf("unmeasured"), "#summary", async (o) => {
    for (const view of ["summary", "operators", "roofline", "what-if"]) {
      await o.show(view);
      assert.match(await o.text(), /sonde profile MODEL -n 100/, view);
      if (view === "operators") assert.equal((await tableRows(o.page, "operators by type")).length, 0);
    }
  }));

test("types of operators have their colours explained below the roofline", async () =>
  using(await pageOf("hours"), "#roofline", async (o) => {
    const names = await o.page.$$eval("#view .legend > span", (all) => all.map((span) => span.textContent));
    assert.deepEqual([...names].sort(), ["Add", "Conv", "MatMul", "Relu", "Softmax", "Transpose"]);
  }));

test("a long name breaks inside the panel of the selection", async () =>
  using(await pageOf("long"), "#graph?sel=step-0", async (o) => {
    assert.match(await o.text("aside p"), /^\/features\/block\./);
    const [wide, room] = await o.page.$eval("aside", (e) => [e.scrollWidth, e.clientWidth]);
    assert.ok(wide <= room, `${wide} pixels in ${room}`);
  }));
