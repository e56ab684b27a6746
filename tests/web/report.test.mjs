// SPDX-License-Identifier: Apache-2.0
// Every view with profiles of five kinds of models: it shows what the profile holds, without an error, a request or a
// fault that axe-core calls serious, in light and dark and on a phone; and its figures are the profile's.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { seriousFaults } from "./axe.mjs";
import { csvRows, nanoseconds, showsShare, showsTime, tableRows } from "./figures.mjs";
import { launch, open, PHONE } from "./page.mjs";
import { hiccupProfile, MODELS, onnxruntimeProfile, profileOf, pytorchProfile } from "./profiles.mjs";

const BRACKETS = new Set(["[Mem alloc/free]", "[Other]"]); // time that belongs to no operator
const VIEWS = ["summary", "timeline", "operators", "graph", "memory", "roofline", "startup", "flame", "what-if"];

let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

/** What each view must hold; more than "nothing went wrong". */
const CONTENT = {
  async summary(o, { summary }) {
    const text = await o.text();
    assert.match(text, /Where the time goes/);
    assert.ok(text.includes(summary.operators.find((row) => !row.name.startsWith("[")).name), "the operator that takes most");
    assert.ok((await o.page.$$("#view svg")).length >= 3, "pictures");
  },
  async timeline(o) {
    assert.match(await o.page.getAttribute("#view canvas", "aria-label"), /Timeline of \d+ thread/);
    assert.ok((await o.colours()) > 8, "lanes are drawn");
  },
  async operators(o, { summary }) {
    assert.equal((await tableRows(o.page, "operators by type")).length, summary.operators.length);
  },
  async graph(o) {
    assert.match(await o.page.getAttribute("#view canvas", "aria-label"), /Graph of [\d\u202f]+ steps?/);
    assert.ok((await o.colours()) > 8, "boxes are drawn");
  },
  async memory(o, { summary }) {
    assert.match(await o.text(), /\d\u202f(B|KiB|MiB)/);
    // Not more steps than the model has: those that were folded away have no place on the axis.
    const label = await o.page.getAttribute('#view canvas[aria-label^="Tensor lifetimes"]', "aria-label");
    const steps = Number(label.match(/over ([\d\u202f]+) steps/)[1].replace(/\u202f/g, ""));
    const most = summary.nodes.reduce((sum, row) => sum + Math.max(1, row.calls), 0);
    assert.ok(steps <= most, `${steps} steps on the axis of lifetimes, ${most} in a run`);
    assert.ok((await o.colours()) > 3, "rectangles are drawn");
  },
  async roofline(o) {
    const points = await o.page.$$("#view svg .pick");
    assert.ok(points.length || /sonde doctor --calibrate/.test(await o.text()), "points, or how to get the peaks");
  },
  async startup(o) {
    assert.match(await o.text(), /to the first result/);
    assert.ok((await tableRows(o.page, "start-up")).length > 1);
  },
  async flame(o, { summary }) {
    const label = await o.page.getAttribute("#view canvas", "aria-label");
    assert.match(label, new RegExp(`median of ${summary.iterations} runs`));
    assert.ok((await o.colours()) > 5, "frames are drawn");
  },
  async "what-if"(o) {
    assert.ok(await o.page.$("#view input[type=range], #view input[type=number]"), "an assumption can be made");
  },
};

for (const kind of Object.keys(MODELS)) {
  describe(`the profile of a model: ${kind}`, () => {
    let profile;
    before(async () => (profile = await profileOf(kind)));

    for (const dark of [false, true]) {
      test(`every view renders and is accessible, ${dark ? "dark" : "light"}`, async (t) => {
        const o = await open(browser, profile.page, { dark });
        try {
          assert.deepEqual(await o.views(), VIEWS);
          for (const view of VIEWS) {
            await t.test(view, async () => {
              await o.show(view);
              assert.doesNotMatch(await o.text(), /could not be drawn|undefined|NaN|\[object/);
              await CONTENT[view](o, profile);
              assert.deepEqual(await seriousFaults(o.page), []);
              assert.deepEqual(o.takeFaults(), []);
            });
          }
        } finally {
          await o.close();
        }
      });
    }

    test("no view scrolls sideways on a phone", async (t) => {
      const o = await open(browser, profile.page, { size: PHONE, touch: true });
      try {
        for (const view of VIEWS) {
          await t.test(view, async () => {
            await o.show(view);
            const wide = await o.page.evaluate(() => {
              const main = document.getElementById("view");
              return { page: document.documentElement.scrollWidth - innerWidth, view: main.scrollWidth - main.clientWidth };
            });
            assert.deepEqual(wide, { page: 0, view: 0 });
          });
        }
        assert.deepEqual(o.faults, []);
      } finally {
        await o.close();
      }
    });

    test("the figures on the page are those of the profile", async () => {
      const { summary, header } = profile;
      const usual = (rows) => rows.reduce((sum, row) => sum + row.usual_ns, 0);
      const o = await open(browser, profile.page);
      try {
        const ns = (key) => summary.latency_ms[key] * 1e6;
        showsTime(await o.text(".headline b"), ns("p50"), "the median in the heading");
        const stats = await o.page.$$eval("#view .stat", (all) => Object.fromEntries(all.map((s) => [s.lastChild.textContent, s.firstChild.textContent])));
        showsTime(stats["median latency"], ns("p50"), "median");
        showsTime(stats["mean"], ns("mean"), "mean");
        showsTime(stats["p99"], ns("p99"), "p99");
        const [fastest, slowest] = stats["fastest … slowest"].split(" … ");
        showsTime(fastest, ns("min"), "fastest");
        showsTime(slowest, ns("max"), "slowest");
        assert.equal(stats["measured runs"], String(summary.iterations));

        await o.show("operators");
        const rows = new Map((await tableRows(o.page, "operators by type")).map((row) => [row["Type"], row]));
        for (const row of summary.operators) {
          const shown = rows.get(row.name);
          assert.ok(shown, `a row for ${row.name}`);
          const known = header.rows.op.find((r) => r.name === row.name);
          showsTime(shown["Mean per run"], row.mean_ms * 1e6, row.name);
          showsTime(shown["Time per run"], known.usual_ns, row.name);
          showsShare(shown["Share"], known.usual_ns / usual(header.rows.op), `share of ${row.name}`);
          if (row.calls > 0) assert.equal(Number(shown["Calls"].replace(/\u202f/g, "")), Number.isInteger(row.calls) ? row.calls : Number(row.calls.toPrecision(3)), `calls of ${row.name}`);
        }
        const sums = await o.page.$$eval(".sums b", (all) => all.map((b) => b.textContent));
        showsTime(sums[0], usual(header.rows.op), "the sum of the rows");
        showsTime(sums[1], summary.operators.reduce((sum, row) => sum + row.mean_ms * 1e6, 0), "the sum of the means");
        showsTime(sums[2], ns("mean"), "the mean beside it");

        for (const [title, by, key] of [["Node", "node", "nodes"], ["Shape", "shape", "shapes"], ["Kernel", "kernel", "kernels"]]) {
          await o.page.click(`#view .segments button:text-is("${title}")`);
          const shown = (await tableRows(o.page, `operators by ${by}`)).filter((row) => !BRACKETS.has(Object.values(row)[0]));
          assert.equal(shown.length, summary[key].length, `rows by ${by}`);
          const wanted = header.rows[by].filter((row) => !row.bracket).map((row) => row.usual_ns).sort((a, b) => b - a);
          shown.forEach((row, i) => showsTime(row["Time per run"], wanted[i], `row ${i} by ${by}`));
        }
        assert.deepEqual(o.faults, []);
      } finally {
        await o.close();
      }
    });

    test("the table saved as CSV holds the profile's numbers", async () => {
      const o = await open(browser, profile.page, { hash: "#operators" });
      try {
        const { name, bytes } = await o.download(o.page.locator("#view button", { hasText: "CSV" }));
        assert.match(name, /\.csv$/);
        const [titles, ...rows] = csvRows(bytes.toString("utf8"));
        const [type, time] = [titles.indexOf("Type"), titles.indexOf("Mean per run (ns)")];
        assert.equal(rows.length, profile.summary.operators.length);
        for (const wanted of profile.summary.operators) {
          const row = rows.find((r) => r[type] === wanted.name);
          assert.ok(row, `a line for ${wanted.name}`);
          assert.ok(Math.abs(Number(row[time]) - wanted.mean_ms * 1e6) <= 1, `${wanted.name}: ${row[time]} ns, not ${wanted.mean_ms * 1e6}`);
        }
      } finally {
        await o.close();
      }
    });
  });
}

test("all nodes behind a fused step are listed", async () => {
  const o = await open(browser, (await profileOf("nodes")).page, { hash: "#graph?sel=step-0" });
  try {
    const behind = o.page.locator("aside section", { hasText: "256 nodes of the model" });
    assert.equal(await behind.locator("dt").count(), 256);
  } finally {
    await o.close();
  }
});

test("a step with bodies takes what they take, without the cost of recording them", async () => {
  const { page, header } = await profileOf("control");
  const o = await open(browser, page, { hash: "#operators" });
  try {
    await o.page.locator("#view [role=gridcell]", { hasText: /^Loop$/ }).first().click();
    await o.show("graph");
    const svg = (await o.download(o.page.locator("#view button", { hasText: "SVG" }))).bytes.toString("utf8");
    const figure = svg.match(/>([\d.]+\u202f\S+) +([\d.]+)\u202f%<\/text><text[^>]*>with its bodies/);
    assert.ok(figure, "the box of the Loop has its figures");
    const [time, share] = [nanoseconds(figure[1]), Number(figure[2]) / 100];
    const own = (name) => header.rows.op.find((row) => row.name === name)?.usual_ns || 0;
    const run = header.rows.op.reduce((sum, row) => sum + row.usual_ns, 0);
    const least = own("Loop") + own("Mul") + own("Identity"); // its body is of these
    assert.ok(time >= 0.99 * least && time <= 1.005 * (run - own("Add")), `${time} ns between ${least} and ${run - own("Add")}`);
    assert.ok(Math.abs(share - time / run) < 0.01, `${share} of a run`);
    assert.match(await o.text("aside"), /Without its bodies/);
  } finally {
    await o.close();
  }
});

test("one slow run does not make a small step the slowest of the page", async () => {
  const o = await open(browser, (await hiccupProfile()).page);
  try {
    showsTime(await o.text(".headline b"), 990e3, "the median");
    const steps = await o.page.$$eval("#view .steps .step", (all) => all.map((step) => [...step.children].map((c) => c.textContent).slice(2)));
    assert.match(steps[0][0], /large/);
    showsTime(steps[0][1], 900e3, "the large step");
    assert.match(steps[1][0], /small/);
    showsTime(steps[1][1], 20e3, "the small step");
    assert.ok(Number(steps[1][3].replace(/[^\d.]/g, "")) < 3, `the small step is ${steps[1][3]} of a run`);
    const shares = await o.page.$$eval("#view .shares .share", (all) => all.map((share) => share.textContent));
    assert.match(shares[0], /^Conv900/);

    await o.show("operators");
    const rows = await tableRows(o.page, "operators by type");
    assert.deepEqual(rows.slice(0, 1).map((row) => row["Type"]), ["Conv"]);
    showsTime(rows.find((row) => row["Type"] === "Relu")["Mean per run"], (40e6 + 20 * 20e3) / 21, "the mean, named");

    await o.show("flame");
    const { bytes } = await o.download(o.page.locator("#view button", { hasText: "Folded" }));
    const frames = new Map(bytes.toString("utf8").trim().split("\n").map((line) => [line.split(/[; ]/).at(-2), Number(line.split(" ").at(-1))]));
    assert.deepEqual([frames.get("large"), frames.get("small")], [900e3, 20e3]);

    await o.show("graph");
    const svg = (await o.download(o.page.locator("#view button", { hasText: "SVG" }))).bytes.toString("utf8");
    const heat = (name) => {
      const [, r, g, b] = svg.match(new RegExp(`fill="rgb\\((\\d+), (\\d+), (\\d+)\\)"/>(?:(?!rgb).)*?>${name}</text>`));
      return Number(r) - (Number(g) + Number(b)) / 2; // how red its box is
    };
    assert.ok(heat("large") > 100 && heat("small") < 30, `the heat of the boxes: ${heat("large")}, ${heat("small")}`);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
});

for (const [program, make, op] of [["ONNX Runtime", onnxruntimeProfile, "Conv"], ["PyTorch", pytorchProfile, "aten::mm"]]) {
  test(`a profile of ${program} opens in the same page`, async (t) => {
    const profile = await make();
    const o = await open(browser, profile.page);
    try {
      for (const view of await o.views()) {
        await t.test(view, async () => {
          await o.show(view);
          assert.doesNotMatch(await o.text(), /could not be drawn|undefined|NaN|\[object/);
          assert.deepEqual(await seriousFaults(o.page), []);
        });
      }
      showsTime(await o.text(".headline b"), profile.summary.latency_ms.p50 * 1e6);
      await o.show("operators");
      const rows = await tableRows(o.page, "operators by type");
      const wanted = profile.summary.operators.find((row) => row.name === op);
      showsTime(rows.find((row) => row["Type"] === op)["Mean per run"], wanted.mean_ms * 1e6, op);
      assert.deepEqual(o.faults, []);
    } finally {
      await o.close();
    }
  });
}

test("forward, backward and optimiser of a training step are to be seen", async () => {
  const o = await open(browser, (await pytorchProfile()).page, { hash: "#timeline?t=0-1000000" });
  try {
    const { bytes } = await o.download(o.page.locator("#view button", { hasText: "SVG" }));
    const svg = bytes.toString("utf8");
    for (const scope of ["forward", "backward", "optimizer"]) assert.ok(svg.includes(`>${scope}`), `the scope ${scope} has its box`);
  } finally {
    await o.close();
  }
});
