// SPDX-License-Identifier: Apache-2.0
// Two profiles in one page: the verdicts and figures of 'sonde diff', and either profile in the other views.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { seriousFaults } from "./axe.mjs";
import { showsTime, tableRows } from "./figures.mjs";
import { launch, open, PHONE } from "./page.mjs";
import { comparison, sameTwice } from "./profiles.mjs";

let browser, made;
before(async () => {
  made = await comparison();
  browser = await launch();
});
after(() => browser?.close());

async function using(options, act) {
  const o = await open(browser, made.page, options);
  try {
    await act(o);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
}

test("the comparison says what sonde diff says", () =>
  using({ hash: "#compare" }, async (o) => {
    const { total, rows } = made.diff;
    const stats = await o.page.$$eval("#view .stat", (all) => Object.fromEntries(all.map((s) => [s.lastChild.textContent, s.firstChild.textContent])));
    showsTime(stats["median before"], made.before.summary.latency_ms.p50 * 1e6, "before");
    showsTime(stats["median after"], made.after.summary.latency_ms.p50 * 1e6, "after");
    const said = { slower: /slower/, faster: /faster/, same: /No difference that matters/, unclear: /noise/ }[total.verdict];
    assert.match(await o.text("#view .verdict"), said);
    const shown = new Map((await tableRows(o.page, "comparison by type")).map((row) => [row["Type"], row]));
    assert.equal(shown.size, rows.length + 1);
    for (const row of [{ ...total, name: "Whole run" }, ...rows]) {
      assert.ok(shown.has(row.name), `a row for ${row.name}`);
      assert.match(shown.get(row.name)["Verdict"], new RegExp(row.verdict), row.name);
      const both = row.old_median_ns > 0 && row.new_median_ns > 0;
      assert.equal(shown.get(row.name)["Change"] !== "", both, `${row.name}: from nothing to something is no percentage`);
    }
  }));

test("the comparison is grouped and filtered, and its address keeps that", () =>
  using({ hash: "#compare" }, async (o) => {
    await o.page.click(`#view .segments button:text-is("Node")`);
    const listed = async () => (await tableRows(o.page, "comparison by node")).slice(1); // behind the whole run
    assert.ok((await listed()).length > 5);
    const verdict = o.page.locator("#view .counts button").nth(1);
    const wanted = Number((await verdict.textContent()).match(/(\d+)$/)[1]);
    await verdict.click();
    assert.equal((await listed()).length, wanted);
    const { hash } = await o.address();
    await o.goto(`#${hash}`);
    assert.equal((await listed()).length, wanted);
  }));

test("equal profiles have no difference, and no axis for it", async () => {
  const o = await open(browser, (await sameTwice()).page, { hash: "#compare" });
  try {
    assert.match(await o.text("#view .verdict"), /No difference/);
    const marks = await o.page.$$eval('section[aria-label="What makes the difference"] svg text.faint', (all) => all.map((text) => text.textContent));
    assert.deepEqual(marks, []);
    assert.deepEqual(o.faults, []);
  } finally {
    await o.close();
  }
});

test("the colours of the two distributions are explained", () =>
  using({ hash: "#compare" }, async (o) => {
    const card = 'section[aria-label="Distribution of the latency"]';
    const shown = await o.page.$$eval(`${card} .legend > span`, (all) => all.map((e) => [e.textContent, getComputedStyle(e.firstChild).backgroundColor]));
    assert.deepEqual(shown.map(([word]) => word), ["before", "after"]);
    const bars = await o.page.$$eval(`${card} svg rect`, (all) => [...new Set(all.map((e) => getComputedStyle(e).fill))]);
    assert.deepEqual([...bars].sort(), shown.map(([, color]) => color).sort());
  }));

test("either profile can be looked at", () =>
  using({}, async (o) => {
    showsTime(await o.text(".headline b"), made.after.summary.latency_ms.p50 * 1e6, "what is now comes first");
    await o.page.click(`header button:text-is("before")`);
    showsTime(await o.text(".headline b"), made.before.summary.latency_ms.p50 * 1e6, "before");
    assert.equal((await o.address()).params.get("of"), "0");
    await o.show("operators");
    assert.equal((await tableRows(o.page, "operators by type")).length, made.before.summary.operators.length);
  }));

for (const dark of [false, true]) {
  test(`every view of a comparison renders and is accessible, ${dark ? "dark" : "light"}`, async (t) =>
    using({ dark }, async (o) => {
      const views = await o.views();
      assert.equal(views[1], "compare");
      for (const view of views) {
        await t.test(view, async () => {
          await o.show(view);
          assert.doesNotMatch(await o.text(), /could not be drawn|undefined|NaN|\[object/);
          assert.deepEqual(await seriousFaults(o.page), []);
        });
      }
    }));
}

test("the comparison does not scroll sideways on a phone", () =>
  using({ hash: "#compare", size: PHONE, touch: true }, async (o) => {
    const wide = await o.page.evaluate(() => {
      const main = document.getElementById("view");
      return { page: document.documentElement.scrollWidth - innerWidth, view: main.scrollWidth - main.clientWidth };
    });
    assert.deepEqual(wide, { page: 0, view: 0 });
  }));
