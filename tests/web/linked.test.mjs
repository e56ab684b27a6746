// SPDX-License-Identifier: Apache-2.0
// What the views have in common: tables that sort and filter, one selection, addresses that open the same picture, keys
// of the page, and files saved from it.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { nanoseconds, tableRows } from "./figures.mjs";
import { launch, open } from "./page.mjs";
import { folder, profileOf } from "./profiles.mjs";
import { writeSynthetic } from "./synthetic.mjs";

const file = join(folder(), "linked.html");
let browser, known;
before(async () => {
  known = await writeSynthetic(file, { spans: 1000, steps: 90 });
  browser = await launch();
});
after(() => browser?.close());

async function using(hash, act, options = {}) {
  const o = await open(browser, options.file ?? file, { hash, ...options });
  try {
    await act(o);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
}
const table = (o) => tableRows(o.page, "operators by node");
const header = (o, title) => o.page.locator("#view [role=columnheader]", { hasText: title }).first();

test("a column sorts both ways, by mouse and by keyboard", () =>
  using("#operators?by=node", async (o) => {
    const order = async () => (await table(o)).map((row) => nanoseconds(row["Time per run"]));
    const time = header(o, "Time per run");
    assert.equal(await time.getAttribute("aria-sort"), "descending");
    const down = await order();
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    await time.locator("button").click();
    assert.equal(await time.getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await order(), [...down].reverse().sort((a, b) => a - b));
    assert.equal((await o.address()).params.get("sort"), "time");
    const name = header(o, "Operator");
    await name.locator("button").focus();
    await o.page.keyboard.press("Enter");
    assert.equal(await name.getAttribute("aria-sort"), "ascending");
    assert.equal(await time.getAttribute("aria-sort"), null);
    const names = (await table(o)).map((row) => row["Operator"]);
    assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b)));
    assert.ok(await o.page.evaluate(() => document.activeElement.dataset.column === "name"), "the focus stays on the title");
  }));

test("/ filters a table, and the sum is of the rows shown", () =>
  using("#operators?by=node", async (o) => {
    await o.page.keyboard.press("/");
    await o.page.keyboard.type("softmax");
    const rows = await table(o);
    const wanted = known.header.rows.node.filter((row) => row.op === "Softmax");
    assert.equal(rows.length, wanted.length);
    assert.match(await o.text("#view .bar [role=status]"), new RegExp(`${wanted.length} of ${known.header.rows.node.length} rows`));
    const shown = nanoseconds((await o.page.$$eval(".sums b", (all) => all.map((b) => b.textContent)))[0]);
    const sum = wanted.reduce((total, row) => total + row.usual_ns, 0);
    assert.ok(Math.abs(shown - sum) <= 0.006 * sum, `${shown} is the sum ${sum}`);
    assert.equal((await o.address()).params.get("filter"), "softmax");
  }));

test("arrow keys choose rows, Enter shows them in the timeline", () =>
  using("#operators", async (o) => {
    await o.page.locator("#view [role=grid]").focus();
    await o.page.keyboard.press("ArrowDown");
    await o.page.keyboard.press("ArrowDown");
    assert.equal((await o.address()).params.get("sel"), "op-1");
    assert.equal((await o.text("aside h2")).trim(), known.header.rows.op[1].name);
    await o.page.keyboard.press("Enter");
    const { view, params } = await o.address();
    assert.deepEqual([view, params.get("sel")], ["timeline", "op-1"]);
  }));

test("what is selected in one view is selected in all", () =>
  using("#operators", async (o) => {
    const row = known.header.rows.op.findIndex((r) => r.op === "MatMul");
    await o.page.locator("#view [role=gridcell]", { hasText: "MatMul" }).first().click();
    for (const view of ["timeline", "graph", "memory", "roofline", "flame", "summary"]) {
      await o.show(view);
      assert.equal((await o.address()).params.get("sel"), `op-${row}`, `in the address of ${view}`);
      assert.equal((await o.text("aside h2")).trim(), "MatMul", `in the details beside ${view}`);
    }
    await o.show("operators");
    await o.page.click(`#view .segments button:text-is("Node")`);
    const rows = await table(o);
    const own = rows.filter((r) => r["Operator"].startsWith("MatMul"));
    assert.ok(own.length === 15 && own.every((r) => r.selected), "every node of the type is marked");
    assert.ok(rows.every((r) => r.selected === r["Operator"].startsWith("MatMul")), "and nothing else");
  }));

for (const view of ["summary", "timeline", "operators?by=node", "graph", "memory", "roofline", "flame", "what-if"]) {
  test(`${view} shows which step is selected`, () =>
    using(`#${view}`, async (o) => {
      const hash = (step) => `#${view}${view.includes("?") ? "&" : "?"}sel=step-${step}`;
      // Two steps of different types with much time, so that they are in every list.
      const [a, b] = ["Conv", "MatMul"].map((op) => known.header.rows.node.find((row) => row.op === op).step);
      await o.goto(hash(a));
      const first = await o.settle();
      await o.goto(hash(b));
      assert.notEqual(await o.settle(), first);
      await o.goto(hash(a));
      assert.equal(await o.settle(), first, "the same address gives the same picture");
    }));
}

/** A view, what a user does there, and then its address must lead to the same. */
const USED = {
  summary: async (o) => o.page.locator("#view .steps button.step").nth(2).click(),
  timeline: async (o) => {
    for (const key of ["w", "w", "d", "ArrowRight"]) await o.page.keyboard.press(key);
  },
  operators: async (o) => {
    await o.page.click(`#view .segments button:text-is("Kernel")`);
    await header(o, "Calls").locator("button").click();
  },
  graph: async (o) => {
    await o.page.click(`#view button:text-is("Type")`);
    await o.page.locator("#view canvas").first().focus();
    for (const key of ["+", "d", "s"]) await o.page.keyboard.press(key);
  },
  memory: async () => undefined,
  roofline: async (o) => header(o, "Time per run").locator("button").click(),
  startup: async (o) => header(o, "Duration").locator("button").click(),
  flame: async (o) => {
    await o.page.locator("#view canvas").first().focus();
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await o.page.keyboard.press(key);
  },
  "what-if": async (o) => o.page.locator("#view input[type=number]").first().fill("4"),
};
for (const [view, act] of Object.entries(USED)) {
  test(`the address of ${view} opens what was seen`, () =>
    using(`#${view}`, async (o) => {
      await act(o);
      await o.page.evaluate(() => document.activeElement?.blur?.());
      await o.page.mouse.move(1, 1);
      await o.settle();
      const { hash } = await o.address();
      const seen = await o.impression();
      await using(`#${hash}`, async (again) => {
        assert.equal((await again.address()).hash, hash);
        const now = await again.impression();
        assert.deepEqual([now.view, now.details, now.pictures.length], [seen.view, seen.details, seen.pictures.length]);
        now.pictures.forEach((pixels, k) => {
          const off = pixels.reduce((sum, v, i) => sum + Math.abs(v - seen.pictures[k][i]), 0) / pixels.length;
          assert.ok(off < 8, `picture ${k} is another one: off by ${off.toFixed(1)} of 255`);
        });
      });
    }));
}

test("keys of the page: views by number, help, theme, along the menu", () =>
  using("", async (o) => {
    const chosen = () => o.page.getAttribute("[role=tab][aria-selected=true]", "id");
    await o.page.keyboard.press("3");
    assert.equal(await chosen(), "tab-operators");
    await o.page.focus("#tab-operators");
    await o.page.keyboard.press("ArrowRight");
    assert.equal(await chosen(), "tab-graph");
    assert.equal(await o.page.evaluate(() => document.activeElement.id), "tab-graph");
    await o.page.keyboard.press("?");
    assert.ok(await o.page.isVisible("dialog[open]"));
    assert.match(await o.text("dialog"), /search/);
    await o.page.keyboard.press("Escape");
    assert.equal(await o.page.$("dialog[open]"), null);
    await o.page.keyboard.press("t");
    assert.equal(await o.page.getAttribute("html", "data-theme"), "dark");
    await o.page.goBack();
    assert.equal(await chosen(), "tab-operators", "the browser's own way back");
  }));

test("every view can be reached and left by Tab alone", () =>
  using("", async (o) => {
    for (const view of await o.views()) {
      await o.show(view);
      await o.page.focus(`#tab-${view}`);
      const seen = new Set();
      for (let i = 0; i < 60; i++) {
        await o.page.keyboard.press("Tab");
        const where = await o.page.evaluate(() => {
          const e = document.activeElement;
          return e === document.body ? "out" : e.closest("#view") ? "view" : e.closest("aside") ? "details" : "frame";
        });
        seen.add(where);
        if (where === "out") break;
      }
      assert.ok(seen.has("view"), `Tab goes into ${view}`);
    }
  }));

test("every table is saved as CSV, every picture as SVG and PNG", async (t) => {
  const cnn = await profileOf("cnn");
  await using("", async (o) => {
    for (const view of await o.views()) {
      await t.test(view, async () => {
        await o.show(view);
        let files = 0;
        for (const kind of ["CSV", "SVG", "PNG"]) {
          const buttons = o.page.locator(`#view button:text-is("${kind}"):visible`);
          for (let i = 0; i < (await buttons.count()); i++) {
            const { name, bytes } = await o.download(buttons.nth(i));
            files++;
            assert.equal(name.slice(-4), `.${kind.toLowerCase()}`);
            if (kind === "PNG") {
              assert.equal(bytes.toString("latin1", 1, 4), "PNG");
              assert.ok(bytes.readUInt32BE(16) >= 100 && bytes.readUInt32BE(20) >= 20, "it has a size");
            } else if (kind === "SVG") {
              const found = await o.parseSvg(bytes.toString("utf8"));
              assert.equal(found.root, "svg", `${name} is well-formed`);
              const shapes = found.names.filter((n) => /^(rect|path|circle|polyline|line)$/.test(n));
              assert.ok(shapes.length > 3 && found.words.length > 3, `${name} holds a picture with words`);
            } else {
              assert.ok(bytes.toString("utf8").split("\r\n").length > 2, `${name} has rows`);
            }
          }
        }
        assert.ok(files > 0, "something can be saved");
      });
    }
  }, { file: cnn.page });
});

test("the page prints: its words in black on white, without buttons", async (t) => {
  for (const dark of [false, true]) {
    await t.test(dark ? "from a dark screen" : "from a light screen", () =>
      using("#operators", async (o) => {
        await o.page.emulateMedia({ media: "print", colorScheme: dark ? "dark" : "light" });
        const look = await o.page.evaluate(() => {
          const style = getComputedStyle(document.body);
          return { paper: style.backgroundColor, ink: style.color, tabs: getComputedStyle(document.querySelector("[role=tablist]")).display };
        });
        assert.deepEqual(look, { paper: "rgb(255, 255, 255)", ink: "rgb(0, 0, 0)", tabs: "none" });
        assert.ok((await o.page.pdf()).length > 5000);
      }, { dark }));
  }
});
