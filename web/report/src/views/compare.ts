// SPDX-License-Identifier: Apache-2.0
// Two profiles beside each other: is the difference more than noise, which rows make it, how the latencies spread, and
// one run of each on one axis of time.
import { brief, Charts } from "../chart";
import { button, clear, empty, h, perFrame } from "../dom";
import * as f from "../format";
import { pictureButtons } from "../picture";
import type { Change, Comparison, PageData } from "../profile";
import type { Page } from "../state";
import type { Opened, View } from "../view";
import { drawChanges } from "./compare_bars";
import { Lanes } from "./compare_lanes";
import { changeTable, rowFinder, type By } from "./compare_table";
import { signed, type Verdict, VERDICTS, verdictText } from "./compare_words";
import { drawHistogram, latencyRange, type Sample } from "./summary_latency";

const BY: [By, string][] = [
  ["op", "Type"],
  ["node", "Node"],
  ["shape", "Shape"],
];

/** As sonde diff judges the whole and each row. */
const RULE =
  "Slower or faster: the change is 2 % or more, and the interval does not contain 0. Same: the interval lies within ±5 %. " +
  "Unclear: anything else. The intervals of all rows together are right with 95 %.";

/** "12.3 % slower", with how sure that is. */
function headline(total: Change): HTMLElement {
  const { low, high } = total;
  const interval = low !== null && high !== null && low > 0 && Number.isFinite(high) ? `95 % interval ${f.change(low)} … ${f.change(high)}` : "too few runs for an interval";
  const words: Record<Verdict, string> = {
    slower: `${f.percent(total.ratio - 1)} slower`,
    faster: `${f.percent(1 - total.ratio)} faster`,
    same: "No difference that matters",
    unclear: "No difference that can be told from noise",
    new: "Only the second profile has runs",
    gone: "Only the first profile has runs",
  };
  const color = total.verdict === "slower" ? "bad" : total.verdict === "faster" ? "good" : "";
  return h(
    "div",
    { class: "verdict" },
    h("p", { class: `big ${color}` }, `${VERDICTS[total.verdict].mark} ${words[total.verdict] ?? words.unclear}`),
    h("p", { class: "faint" }, `${f.change(total.ratio)}, ${interval}, p ${total.p < 0.0001 ? "< 0.0001" : `= ${f.digits(total.p)}`}`),
    h(
      "div",
      { class: "stats" },
      h("div", { class: "stat small" }, h("b", null, f.time(total.old_median_ns)), h("span", null, "median before")),
      h("div", { class: "stat small" }, h("b", null, f.time(total.new_median_ns)), h("span", null, "median after")),
      h("div", { class: "stat small" }, h("b", null, signed(total.new_median_ns - total.old_median_ns)), h("span", null, "change of the median")),
    ),
    h("p", { class: "faint" }, `Means, which single slow runs move: ${f.time(total.old_ns)} before, ${f.time(total.new_ns)} after (${signed(total.new_ns - total.old_ns)}).`),
    h("p", { class: "faint rule" }, RULE),
  );
}

function named(page: Page): HTMLElement {
  const [before, after] = page.data.profiles;
  const line = (word: string, title: string, runs: number): HTMLElement[] => [h("dt", null, word), h("dd", { dir: "auto" }, `${brief(title, 160)} (${f.count(runs)} ${runs === 1 ? "run" : "runs"})`)];
  return h("dl", { class: "facts" }, line("before", before.title, before.summary.iterations), line("after", after.title, after.summary.iterations));
}

/** How many rows got which verdict: also the filter of the table. */
function counts(rows: Change[], chosen: string, choose: (verdict: string) => void): HTMLElement {
  const group = h("div", { class: "bar counts", role: "group", "aria-label": "Rows by verdict" });
  group.append(button(`All ${f.count(rows.length)}`, () => choose(""), { "aria-pressed": String(!chosen) }));
  for (const verdict of Object.keys(VERDICTS) as Verdict[]) {
    const n = rows.reduce((sum, row) => sum + (row.verdict === verdict ? 1 : 0), 0);
    if (n) group.append(button(`${verdictText(verdict)} ${f.count(n)}`, () => choose(verdict), { "aria-pressed": String(chosen === verdict), title: VERDICTS[verdict].hint }));
  }
  return group;
}

function distributions(page: Page, accent: string, grey: string): Sample[] {
  return page.data.profiles.map((p, i) => ({ name: i ? "after" : "before", wall: p.runs.wall, p50: p.summary.wall.p50, p99: p.summary.wall.p99, color: i ? accent : grey }));
}

/** Which bars are whose, in the colours of `distributions`. */
function whose(): HTMLElement {
  const one = (word: string, color: string): HTMLElement => {
    const mark = h("span", { class: "swatch", "aria-hidden": "true" });
    mark.style.background = color;
    return h("span", null, mark, word);
  };
  return h("div", { class: "legend" }, one("before", "var(--faint)"), one("after", "var(--accent)"));
}

/** Where the axis ends before the slowest runs. */
function cutNote(page: Page): HTMLElement {
  const slowest = Math.max(...page.data.profiles.map((p) => p.summary.wall.max));
  const cut = latencyRange(distributions(page, "", "")).cut ? ` The last bar also counts slower ones, up to ${f.time(slowest)}.` : "";
  return h("p", { class: "faint" }, `Share of the runs of each profile by how long they took.${cut}`);
}

function open(root: HTMLElement, page: Page): Opened {
  const comparison = page.data.comparison as Comparison;
  if (!comparison || page.data.profiles.length < 2) {
    root.append(empty("Nothing to compare with", "A comparison needs two profiles of the same model:", "sonde diff before.json after.json -o report.html"));
    return {};
  }
  const charts = new Charts();
  const asked = page.params.get("by");
  let by: By = BY.some(([id]) => id === asked) ? (asked as By) : "op";
  let noise = page.params.get("noise") === "1";
  const opened: Opened = {};
  const find = rowFinder(page);
  const choose = (row: Change): void => {
    const index = find(by, row);
    if (index >= 0) page.selectRow(by, index);
    else page.clear(); // a row that only the other profile has
  };
  const bars = charts.add("Change of the mean time per run by row; the bars add up to the change of the mean of a run. The table below compares medians.", true, (svg, width, t) =>
    drawChanges(svg, width, t, by, comparison.rows[by], comparison.total, noise, (row) => find.chosen(by, row), choose),
  );
  const spread = charts.add("Distributions of the latency before and after, on one axis", false, (svg, width, t) => drawHistogram(svg, width, t, distributions(page, t.accent, t.faint)));
  const lanes = new Lanes(page);
  const place = h("div");
  const groups = h("span", { class: "segments", role: "group", "aria-label": "Group by" });
  const loud = h("input", { type: "checkbox", id: "only-changes", onchange: () => {
    noise = !loud.checked;
    page.set("noise", noise ? "1" : null);
    bars.redraw();
  } });
  loud.checked = !noise;
  let list: ReturnType<typeof changeTable>;
  const show = (): void => {
    const verdict = page.params.get("verdict") ?? "";
    const all = comparison.rows[by];
    list = changeTable(page, by, verdict ? all.filter((row) => row.verdict === verdict) : all, comparison.total, find, choose);
    clear(groups);
    for (const [id, title] of BY) groups.append(button(title, () => regroup(id), { "aria-pressed": String(id === by) }));
    clear(place);
    place.append(h("div", { class: "bar" }, groups), counts(all, verdict, (v) => {
      page.set("verdict", v || null);
      show();
      place.querySelector<HTMLElement>(".counts [aria-pressed='true']")?.focus();
    }), list.element);
    opened.search = list.search;
  };
  const regroup = (id: By): void => {
    by = id;
    page.set("by", id === "op" ? null : id);
    page.set("verdict", null);
    show();
    bars.redraw();
    groups.querySelector<HTMLElement>("[aria-pressed='true']")?.focus();
  };
  show();
  const card = (title: string, kind: string, tools: (Node | null)[], ...children: Node[]): HTMLElement =>
    h("section", { class: `card ${kind}`, "aria-label": title }, h("h2", null, title, tools), children);
  root.append(
    h("h2", { class: "visually-hidden" }, "Compare"),
    h(
      "div",
      { class: "cards compare" },
      h("section", { class: "card", "aria-label": "Verdict" }, headline(comparison.total), named(page)),
      card("Distribution of the latency", "", [pictureButtons("distributions", () => spread.svg)], spread.element, whose(), cutNote(page)),
      card("What makes the difference", "wide", [pictureButtons("difference", () => bars.svg)], h("p", null, loud, h("label", { for: "only-changes" }, " Only what is more than noise")), h("p", { class: "faint" }, "Change of the mean time per run: means of rows add up to that of the run, medians do not. The table of rows compares medians."), bars.element),
      card("One run of each", "wide", [lanes.buttons], h("p", { class: "faint" }, lanes.caption), lanes.element),
      card("Rows", "wide", [], place),
    ),
  );
  lanes.resized();
  opened.selected = perFrame(() => {
    find.mark();
    bars.redraw();
    lanes.draw();
    list.reveal();
  });
  opened.resized = () => lanes.resized();
  opened.key = (e) => lanes.key(e);
  opened.close = () => {
    lanes.close();
    charts.close();
  };
  return opened;
}

export const compare: View = {
  id: "compare",
  title: "Compare",
  keys: [
    ["W S", "zoom the two runs in and out"],
    ["A D", "move them left and right"],
    ["0", "the whole of both runs"],
    ["← →", "the operator before, the one behind (with the runs focused)"],
  ],
  shown: (data: PageData) => data.comparison !== null,
  open,
};
