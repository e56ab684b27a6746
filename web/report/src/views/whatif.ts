// SPDX-License-Identifier: Apache-2.0
// What another form of the model would give: scenarios that sonde measured, and a calculator for one's own assumptions.
import { type BarRow, barRows, brief, Charts } from "../chart";
import { append, h } from "../dom";
import * as f from "../format";
import { pictureButtons } from "../picture";
import type { Profile, Scenario } from "../profile";
import type { Page } from "../state";
import { Table } from "../table";
import type { Opened, View } from "../view";
import { calculator } from "./whatif_calculator";

const measured = (x: Scenario): boolean => x.ns > 0 && Number.isFinite(x.ns);

function scenarioBars(p: Profile, good: string, bad: string, grey: string): BarRow[] {
  const known = p.what_if.filter(measured);
  const first = known.find((x) => x.speedup > 0);
  const now = first ? first.ns * first.speedup : NaN;
  const rows: BarRow[] = known.map((x, i) => ({
    key: `scenario-${i}`,
    name: x.name,
    from: 0,
    to: x.ns,
    text: `${f.time(x.ns)}  ${f.digits(x.speedup)} ×`,
    fill: x.speedup >= 1.02 ? good : x.speedup <= 0.98 ? bad : grey,
    lines: [brief(x.name), `${f.time(x.ns)} per run, ${f.digits(x.speedup)} times as fast`, ...(x.note ? [brief(x.note, 200)] : [])],
  }));
  if (Number.isFinite(now)) rows.unshift({ key: "now", name: "now", from: 0, to: now, text: f.time(now), fill: grey, lines: ["The model as it is", f.time(now)], strong: true });
  return rows;
}

function scenarioTable(p: Profile): HTMLElement {
  return new Table<Scenario>({
    name: "what-if",
    columns: [
      { id: "name", title: "Scenario", text: (x) => x.name, width: "minmax(10rem, 1fr)" },
      { id: "time", title: "Time per run", unit: "ns", number: true, text: (x) => (measured(x) ? f.time(x.ns) : ""), value: (x) => (measured(x) ? x.ns : null), width: "8.6rem" },
      { id: "speedup", title: "Speed-up", number: true, text: (x) => (measured(x) ? `${f.digits(x.speedup)} ×` : ""), value: (x) => (measured(x) ? x.speedup : null) },
      { id: "note", title: "Note", text: (x) => x.note, width: "minmax(12rem, 3fr)" },
    ],
    rows: p.what_if,
    words: (x) => `${x.name} ${x.note}`,
  }).element;
}

/** What was measured, or how to measure. */
function measuredCard(charts: Charts, p: Profile): HTMLElement {
  const card = h("section", { class: "card wide", "aria-label": "Measured" });
  if (!p.what_if.length) {
    append(card, [
      h("h2", null, "Measured"),
      h("p", { class: "faint" }, "This profile holds no measured scenarios. sonde builds sparse, 8-bit, 4-bit and bf16 forms of a model with made-up weights and measures them on this machine; it says nothing about accuracy:"),
      h("pre", null, h("code", null, "sonde whatif MODEL\nsonde profile MODEL --what-if -o report.html")),
    ]);
    return card;
  }
  const most = p.what_if.reduce((high, x) => (measured(x) ? Math.max(high, x.ns, x.ns * x.speedup) : high), 0);
  const chart = charts.add(`Time of a run in ${p.what_if.length} measured scenarios. The table holds the same figures.`, false, (svg, width, t) =>
    barRows(svg, width, t, scenarioBars(p, t.good, t.bad, t.grey), { low: 0, high: most || 1, figure: 128, axis: f.mark }),
  );
  append(card, [
    h("h2", null, "Measured", pictureButtons("what-if", () => chart.svg)),
    chart.element,
    h("p", { class: "faint" }, "Speed only, with made-up weights: accuracy has to be measured on its own."),
    scenarioTable(p),
  ]);
  return card;
}

function open(root: HTMLElement, page: Page): Opened {
  const charts = new Charts();
  const p = page.profile;
  const own = calculator(charts, page);
  root.append(h("h2", { class: "visually-hidden" }, "What-if"), h("div", { class: "cards whatif" }, p.what_if.length ? [measuredCard(charts, p), own.element] : [own.element, measuredCard(charts, p)]));
  const close = (): void => {
    own.close();
    charts.close();
  };
  return { close, selected: own.selected };
}

export const whatif: View = {
  id: "what-if",
  title: "What-if",
  shown: () => true,
  open,
};
