// SPDX-License-Identifier: Apache-2.0
// Trends in the page, alone and beside a profile: figures, changes, the pair to compare, mouse and keyboard, hostile
// texts, no trends.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { seriousFaults } from "./axe.mjs";
import { tableRows } from "./figures.mjs";
import { launch, open, PHONE } from "./page.mjs";
import { folder } from "./profiles.mjs";
import { trendOf, writeSynthetic, writeTrends } from "./synthetic.mjs";

const [alone, beside, hostile, several, odd, joined] = ["alone", "beside", "hostile", "several", "odd", "joined"].map((name) => join(folder(), `trend-${name}.html`));
const known = trendOf({ entries: 60, changes: [[20, 1.05], [45, 1 / 1.08]] });
const EVIL = `</script><img src=x onerror=alert(1)>"'\u202e\u0007`;
let browser;

before(async () => {
  await writeTrends(alone, [known]);
  await writeSynthetic(beside, { spans: 1000, steps: 30, change: ({ header }) => (header.trends = [known]) });
  const evil = trendOf({ entries: 30, changes: [[15, 1.1]] });
  for (const p of evil.points) [p.commit, p.note] = [EVIL, EVIL];
  await writeTrends(hostile, [{ ...evil, title: EVIL, machine: EVIL }]);
  await writeTrends(several, [known, trendOf({ entries: 5000, changes: [[2500, 1.02]] }), trendOf({ entries: 1, changes: [] })]);
  const strange = trendOf({ entries: 12, changes: [] });
  Object.assign(strange.points[3], { value_ms: null, at_unix_ms: 9e15, change: true, ratio: undefined });
  Object.assign(strange.points[5], { value_ms: 1e9, low_ms: 0, high_ms: 2e9 });
  strange.levels = [{ from: 0, to: 99, value_ms: null }, { from: 5, to: 2, value_ms: 12 }];
  await writeTrends(odd, [strange, { title: "", machine: "", points: [], levels: [] }, { title: "zeros", machine: "", points: [1, 2, 3].map((id) => ({ id, value_ms: 0 })), levels: [] }]);
  const versions = trendOf({ entries: 60, changes: [[20, 1.05], [45, 1 / 1.08]] });
  versions.points.forEach((p, i) => (p.which = i < 45 ? "net-v1" : EVIL));
  await writeTrends(joined, [{ ...versions, across: "model", db: "ci/history.db" }, { ...known, db: "it's mine.db" }, { ...known, db: "-x.db" }]);
  browser = await launch();
});
after(() => browser?.close());

async function using(file, options, act) {
  const o = await open(browser, file, options);
  try {
    await act(o);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
}
const command = (o) => o.text("#view .trend-command");
const chart = (o) => o.page.locator("#view .trend-chart");
/** Where an entry stands on the screen. */
async function placeOf(o, position) {
  const box = await o.page.locator("#view .trend-chart .u-over").boundingBox();
  const n = known.points.length;
  return { x: box.x + ((position + 0.5) / n) * box.width, y: box.y + box.height / 2 };
}

for (const dark of [false, true]) {
  test(`a page of trends alone has one view, ${dark ? "dark" : "light"}`, () =>
    using(alone, { dark }, async (o) => {
      assert.deepEqual(await o.views(), ["trend"]);
      const text = await o.text();
      assert.match(text, /60 entries, now at 11\.7\u202fms: faster by 7\.4\d?\u202f% since commit [0-9a-f]{10} of 2026-02-15, the last of 2 changes/);
      assert.doesNotMatch(text, /undefined|NaN|\[object|no measured run/);
      assert.equal((await o.text("h1")).trim(), known.title);
      assert.ok((await o.colours()) > 5, "points, levels and marks are drawn");
      assert.deepEqual(await seriousFaults(o.page), []);
    }));
}

test("beside a profile it is one of the views", () =>
  using(beside, {}, async (o) => {
    assert.deepEqual((await o.views()).slice(0, 3), ["summary", "trend", "timeline"]);
    await o.show("trend");
    assert.match(await o.text(), /60 entries/);
    await o.show("summary");
    assert.match(await o.text(), /Where the time goes/);
  }));

test("the table has every entry, and its CSV all digits", () =>
  using(alone, {}, async (o) => {
    const rows = await tableRows(o.page, "entries");
    assert.equal(rows.length, 60);
    assert.equal(rows[0]["Entry"], "60");
    const changed = rows.filter((row) => row["Change"]);
    assert.deepEqual(changed.map((row) => [row["Entry"], row["Change"]]), [["46", "▼ −7.41\u202f%"], ["21", "▲ +5.00\u202f%"]]);
    const { bytes } = await o.download(o.page.locator("#view button", { hasText: "CSV" }));
    assert.ok(bytes.toString().includes(String(known.points[7].value_ms)), "the plain number");
  }));

test("two points that are clicked give the command that compares them", () =>
  using(alone, {}, async (o) => {
    assert.equal(await command(o), "sonde history diff 45 46", "at first the last change");
    for (const position of [10, 30]) {
      const { x, y } = await placeOf(o, position);
      await o.page.mouse.move(x, y);
      await o.page.mouse.click(x, y);
    }
    assert.equal(await command(o), "sonde history diff 11 31");
    assert.match(await o.text("#view .trend-pair"), /The entries chosen, 11 and 31/);
    const { hash, params } = await o.address();
    assert.equal(params.get("pick"), "11,31");
    await o.goto(`#${hash}`);
    assert.equal(await command(o), "sonde history diff 11 31", "the address keeps it");
    const third = await placeOf(o, 50);
    await o.page.mouse.click(third.x, third.y);
    assert.equal(await command(o), "sonde history diff 31 51", "a third takes the place of the first");
  }));

test("the pointer reads commit, date and value", () =>
  using(alone, {}, async (o) => {
    const { x, y } = await placeOf(o, 20);
    await o.page.mouse.move(x, y);
    await o.page.waitForSelector(".tooltip:not([hidden])");
    const said = await o.text(".tooltip");
    assert.match(said, /ms\s*95 % interval/);
    assert.match(said, /entry 21, commit [0-9a-f]{10}, 2026-01-21 12:00 UTC/);
    assert.match(said, /From here on slower by 5\.00\u202f%/);
  }));

test("everything the mouse does, keys do", () =>
  using(alone, {}, async (o) => {
    await chart(o).focus();
    const status = () => o.text("#view [aria-live]");
    await o.page.keyboard.press("End");
    assert.match(await status(), /entry 60/);
    await o.page.keyboard.press("PageUp");
    assert.match(await status(), /entry 46.*faster by/s);
    await o.page.keyboard.press("PageUp");
    await o.page.keyboard.press("ArrowLeft");
    await o.page.keyboard.press("Enter");
    await o.page.keyboard.press("Home");
    await o.page.keyboard.press(" ");
    assert.equal(await command(o), "sonde history diff 1 20");
    const whole = await o.picture();
    await o.page.keyboard.press("w");
    assert.notEqual(await o.settle(), whole, "zoomed");
    await o.page.keyboard.press("0");
    assert.equal(await o.settle(), whole, "and back");
    await o.page.keyboard.press("Escape");
    assert.equal(await command(o), "sonde history diff 45 46");
  }));

test("several trends are a list, and one of 5,000 entries is drawn", () =>
  using(several, {}, async (o) => {
    const rows = await tableRows(o.page, "trends");
    assert.deepEqual(rows.map((row) => row["Entries"]), ["60", "5000", "1"]);
    await o.page.locator("#view .trend-list [role=gridcell]", { hasText: /^5000$/ }).click();
    assert.match(await o.text(), /5000 entries, now at/);
    assert.equal(await command(o), "sonde history diff 2500 2501");
    const { hash } = await o.address();
    await o.goto(`#${hash}`);
    assert.match(await o.text(), /5000 entries, now at/);
    await o.page.locator("#view .trend-list [role=gridcell]", { hasText: /, 1 entries$/ }).click();
    assert.match(await o.text(), /nothing to compare yet/);
    assert.deepEqual(await seriousFaults(o.page), []);
  }));

test("odd values are drawn as well as can be", () =>
  using(odd, {}, async (o) => {
    for (const t of [0, 1, 2]) {
      await o.goto(`#trend?t=${t}`);
      assert.doesNotMatch(await o.text(), /could not be drawn|undefined|NaN|Infinity|Invalid/);
    }
    await o.goto("#trend?t=77&pick=nothing,1e9");
    assert.match(await o.text(), /12 entries/);
  }));

test("texts are texts", () =>
  using(hostile, {}, async (o) => {
    assert.equal(await o.page.$("#view img"), null);
    assert.match(await o.text(), /<img src=x/);
    assert.doesNotMatch(await o.text("#view h2, h1"), /[\u202e\u0007]/);
  }));

test("entries of a joined trend say which one they are", () =>
  using(joined, {}, async (o) => {
    const rows = await tableRows(o.page, "entries");
    assert.equal(rows[59]["Model"], "net-v1");
    assert.match(rows[0]["Model"], /<img src=x/);
    assert.equal(await o.page.$("#view img"), null);
    const { x, y } = await placeOf(o, 20);
    await o.page.mouse.move(x, y);
    await o.page.waitForSelector(".tooltip:not([hidden])");
    assert.match(await o.text(".tooltip"), /entry 21, .*net-v1/s);
    assert.match(await o.text("#view .trend-pair"), /45 \(net-v1\) and 46 \(/);
    assert.deepEqual(await seriousFaults(o.page), []);
  }));

test("the command that compares names the database", () =>
  using(joined, {}, async (o) => {
    const said = [];
    for (const t of [0, 1, 2]) {
      await o.goto(`#trend?t=${t}`);
      said.push(await command(o));
    }
    assert.deepEqual(said, ["sonde history diff 45 46 --db ci/history.db", "sonde history diff 45 46 --db 'it'\\''s mine.db'", "sonde history diff 45 46 --db ./-x.db"]);
  }));

test("entries that are alike have no such column", () =>
  using(alone, {}, async (o) => assert.ok(!("Model" in (await tableRows(o.page, "entries"))[0]))));

test("pictures can be saved", () =>
  using(alone, {}, async (o) => {
    const { name, bytes } = await o.download(o.page.locator("#view button", { hasText: "SVG" }));
    assert.match(name, /trend\.svg$/);
    const svg = await o.parseSvg(bytes.toString());
    assert.equal(svg.root, "svg");
    assert.match(svg.words, /▲ \+5\.00/);
  }));

test("it does not scroll sideways on a phone", () =>
  using(several, { size: PHONE, touch: true }, async (o) => {
    const wide = await o.page.evaluate(() => {
      const main = document.getElementById("view");
      return { page: document.documentElement.scrollWidth - innerWidth, view: main.scrollWidth - main.clientWidth };
    });
    assert.deepEqual(wide, { page: 0, view: 0 });
  }));

test("without trends there is no such view", async () => {
  const file = join(folder(), "no-trend.html");
  await writeSynthetic(file, { spans: 500, steps: 10 });
  await using(file, {}, async (o) => assert.ok(!(await o.views()).includes("trend")));
});
