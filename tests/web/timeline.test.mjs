// SPDX-License-Identifier: Apache-2.0
// The timeline and the other pictures by mouse and keyboard, on a profile whose every span is known.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { showsTime, tableRows } from "./figures.mjs";
import { launch, open } from "./page.mjs";
import { folder } from "./profiles.mjs";
import { writeSynthetic } from "./synthetic.mjs";

const RUNS = 10;
const file = join(folder(), "known.html");
let browser, known;
before(async () => {
  known = await writeSynthetic(file, { spans: RUNS * 100, steps: 90 });
  browser = await launch();
});
after(() => browser?.close());

async function using(hash, act) {
  const o = await open(browser, file, { hash });
  try {
    await act(o);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
}
const windowOf = async (o) => {
  const { params, hash } = await o.address();
  assert.match(params.get("t") ?? "", /^\d+-\d+$/, `the window is in the address #${hash}`);
  const [from, to] = params.get("t").split("-").map(Number);
  return { from, to, length: to - from };
};
/** Where a span lies in time. */
const timeOf = (i) => [known.times.start[i], known.times.start[i] + known.times.duration[i]];
const canvasBox = (o) => o.page.locator("#view canvas").first().boundingBox();

test("W, S, A and D zoom and pan the timeline, 0 shows all of it", () =>
  using("#timeline", async (o) => {
    await o.page.keyboard.press("w");
    const first = await windowOf(o);
    await o.page.keyboard.press("w");
    const nearer = await windowOf(o);
    assert.ok(nearer.length < first.length);
    assert.ok(nearer.from >= first.from && nearer.to <= first.to, "about the middle");
    await o.page.keyboard.press("s");
    assert.ok((await windowOf(o)).length > nearer.length);
    const here = await windowOf(o);
    await o.page.keyboard.press("a");
    const left = await windowOf(o);
    assert.ok(left.from < here.from && Math.abs(left.length - here.length) <= 2);
    await o.page.keyboard.press("d");
    assert.ok(Math.abs((await windowOf(o)).from - here.from) <= 2, "D goes back where A came from");
    await o.page.keyboard.press("0");
    const all = await windowOf(o);
    assert.ok(all.from === 0 && all.to >= timeOf(known.times.start.length - 1)[1]);
  }));

test("the wheel with Ctrl zooms at the pointer, dragging pans", () =>
  using("#timeline", async (o) => {
    const box = await canvasBox(o);
    await o.page.keyboard.press("w"); // so that there is room at both sides, and a window in the address
    const before = await windowOf(o);
    const y = box.y + box.height / 2;
    await o.page.mouse.move(box.x + box.width * 0.6, y);
    await o.page.keyboard.down("Control");
    await o.page.mouse.wheel(0, -240);
    await o.page.keyboard.up("Control");
    const nearer = await windowOf(o);
    assert.ok(nearer.length < before.length);
    await o.page.mouse.down();
    await o.page.mouse.move(box.x + box.width * 0.6 - 150, y, { steps: 5 });
    await o.page.mouse.up();
    const moved = await windowOf(o);
    assert.ok(moved.from > nearer.from, "what is dragged to the left shows what comes later");
    assert.ok(Math.abs(moved.length - nearer.length) <= 2, "and as much of it");
    await o.page.keyboard.down("Shift");
    await o.page.mouse.wheel(0, -200);
    await o.page.keyboard.up("Shift");
    assert.ok((await windowOf(o)).from < moved.from, "Shift and the wheel pan, too");
  }));

test("a click selects the span, and the details are of the same", async () => {
  const wanted = known.spanOf(4, 42);
  const [from, to] = timeOf(wanted);
  await using(`#timeline?t=${from}-${to}`, async (o) => {
    const box = await canvasBox(o);
    const found = [];
    for (let y = 66; y < 200; y += 9) {
      await o.page.mouse.click(box.x + box.width * 0.6, box.y + y);
      const { params } = await o.address();
      if (!params.has("sel")) continue;
      found.push(params.get("sel"));
      if (params.get("sel") !== `span-${wanted}`) continue;
      const details = await o.text("aside");
      assert.ok(details.includes(known.header.steps[42].name), "the node's name");
      const times = await o.page.$$eval("aside dd", (all) => all.map((d) => d.textContent));
      assert.ok(times.some((text) => { try { showsTime(text, to - from); return true; } catch { return false; } }), `its duration among ${times}`);
      return;
    }
    assert.fail(`no click selected span-${wanted}, only ${[...new Set(found)]}`);
  });
});

test("arrow keys go from span to span", () =>
  using(`#timeline?sel=span-${known.spanOf(3, 11)}`, async (o) => {
    await o.page.keyboard.press("ArrowRight");
    assert.equal((await o.address()).params.get("sel"), `span-${known.spanOf(3, 12)}`);
    await o.page.keyboard.press("ArrowLeft");
    assert.equal((await o.address()).params.get("sel"), `span-${known.spanOf(3, 11)}`);
    await o.page.keyboard.press("Escape");
    assert.equal((await o.address()).params.get("sel"), null);
    assert.ok(await o.page.isHidden("aside"));
  }));

test("/ searches the timeline, Enter goes from hit to hit", () =>
  using("#timeline", async (o) => {
    await o.page.keyboard.press("/");
    assert.equal(await o.page.evaluate(() => document.activeElement.type), "search");
    const step = known.header.steps[43];
    await o.page.keyboard.type(step.name);
    await o.page.waitForFunction(() => /\d/.test(document.querySelector("#view .toolbar [role=status]").textContent));
    const count = () => o.text("#view .toolbar [role=status]");
    assert.match(await count(), new RegExp(`^${RUNS}$|of ${RUNS}`), "once in each run");
    await o.page.keyboard.press("Enter");
    const first = (await o.address()).params.get("sel");
    await o.page.keyboard.press("Enter");
    const second = (await o.address()).params.get("sel");
    const runOf = (sel) => [...Array(RUNS).keys()].find((r) => sel === `span-${known.spanOf(r, 43)}`);
    assert.equal(runOf(second), (runOf(first) + 1) % RUNS);
    assert.match(await count(), new RegExp(`^\\d+ of ${RUNS}$`));
    await o.page.keyboard.press("Shift+Enter");
    assert.equal((await o.address()).params.get("sel"), first);
  }));

test("a stretch of time has its statistics", async () => {
  const spans = [known.spanOf(2, 0), known.spanOf(5, 0)]; // three whole runs, less the first one's beginning
  const from = known.times.start[spans[0]];
  const to = known.times.start[spans[1]] - 1;
  await using(`#timeline?a=${from}-${to}`, async (o) => {
    const rows = await tableRows(o.page, "selection of the timeline");
    const row = rows.find((r) => r["Name"] === known.header.steps[7].name && r["Kind"] === "operator");
    assert.ok(row, "a row for the step");
    assert.equal(row["Count"], "3");
    const durations = [2, 3, 4].map((r) => known.times.duration[known.spanOf(r, 7)]);
    showsTime(row["Total"], durations.reduce((a, b) => a + b), "total");
    showsTime(row["Min"], Math.min(...durations), "min");
    showsTime(row["Max"], Math.max(...durations), "max");
    showsTime(row["Median"], durations.sort((a, b) => a - b)[1], "median");
  });
});

test("dragging with Shift selects a stretch of time", () =>
  using("#timeline", async (o) => {
    const box = await canvasBox(o);
    await o.page.keyboard.down("Shift");
    await o.page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
    await o.page.mouse.down();
    await o.page.mouse.move(box.x + box.width * 0.8, box.y + box.height / 2, { steps: 4 });
    await o.page.mouse.up();
    await o.page.keyboard.up("Shift");
    assert.ok((await tableRows(o.page, "selection of the timeline")).length > 10);
    assert.match((await o.address()).params.get("a") ?? "", /^\d+-\d+$/);
  }));

test("the graph zooms, pans, searches and is walked by keys", () =>
  using("#graph", async (o) => {
    const at = async () => (await o.address()).params.get("at");
    await o.page.locator("#view canvas").first().focus();
    await o.page.keyboard.press("+");
    const nearer = await at();
    await o.page.keyboard.press("d");
    assert.notEqual(await at(), nearer, "D pans");
    const box = await canvasBox(o);
    const panned = await at();
    await o.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await o.page.mouse.wheel(0, -200);
    const wheeled = await at();
    assert.notEqual(wheeled, panned, "the wheel zooms");
    await o.page.mouse.down();
    await o.page.mouse.move(box.x + box.width / 2 + 80, box.y + box.height / 2 + 40, { steps: 4 });
    await o.page.mouse.up();
    assert.notEqual(await at(), wheeled, "dragging pans");
    await o.page.keyboard.press("/");
    await o.page.keyboard.type(known.header.steps[31].name);
    await o.page.keyboard.press("Enter");
    assert.equal((await o.address()).params.get("sel"), "step-31");
    assert.ok((await o.text("aside")).includes(known.header.steps[31].name));
    await o.page.keyboard.press("Escape"); // out of the field
    await o.page.locator("#view canvas").first().focus();
    await o.page.keyboard.press("ArrowDown");
    assert.equal((await o.address()).params.get("sel"), "step-32", "down goes to who reads its result");
    await o.page.keyboard.press("ArrowUp");
    assert.equal((await o.address()).params.get("sel"), "step-31");
  }));

test("a click on a box of the graph selects its step", async () => {
  const row = known.header.steps[20].rows[1];
  await using(`#graph?sel=node-${row}`, async (o) => {
    await o.page.locator("#view canvas").first().focus();
    await o.page.keyboard.press("f"); // its box in the middle
    await o.settle();
    const box = await canvasBox(o);
    await o.page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    assert.equal((await o.address()).params.get("sel"), "step-20");
  });
});

test("frames of the flame graph are found and zoomed to by mouse and keyboard", () =>
  using("#flame", async (o) => {
    const box = await canvasBox(o);
    await o.page.locator("#view canvas").first().focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await o.page.keyboard.press(key);
    const zoomed = (await o.address()).params.get("root");
    assert.match(zoomed ?? "", /^\d+$/, "Enter zooms");
    await o.page.keyboard.press("Escape");
    assert.notEqual((await o.address()).params.get("root"), zoomed, "Escape zooms out");
    while ((await o.address()).params.get("root")) await o.page.keyboard.press("Escape");
    await o.page.mouse.click(box.x + box.width * 0.2, box.y + 30);
    assert.match((await o.address()).params.get("root") ?? "", /^\d+$/, "a click zooms");
    await o.page.keyboard.press("/");
    await o.page.keyboard.type("Conv");
    await o.page.waitForFunction(() => /per run/.test(document.querySelector("#view .toolbar [role=status]").textContent));
  }));
