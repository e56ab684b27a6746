// SPDX-License-Identifier: Apache-2.0
// The ten steps that take most of a run.
import { brief } from "../chart";
import { opColor, theme } from "../colors";
import { button, h } from "../dom";
import * as f from "../format";
import { endKept, forList } from "../names";
import type { Row } from "../profile";
import type { Page } from "../state";
import type { Marked } from "./summary_shares";

const SHOWN = 10;

/** The first of its nodes: what tells two steps of one type apart. */
const nodeOf = (row: Row): string => row.node.split(", ", 1)[0] || row.name;

export function slowest(page: Page): Marked {
  const p = page.profile;
  const rows = p.rows.node
    .map((row, index) => ({ row, index }))
    .filter(({ row }) => !row.bracket && row.usual_ns > 0)
    .sort((a, b) => b.row.usual_ns - a.row.usual_ns);
  const most = rows[0]?.row.usual_share || 1;
  const { common, names } = forList(rows.slice(0, SHOWN).map(({ row }) => nodeOf(row)));
  const items = rows.slice(0, SHOWN).map(({ row, index }, i) => {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    const fill = h("span", { class: "fill", "aria-hidden": "true" });
    fill.style.width = `${(row.usual_share / most) * 100}%`;
    return h(
      "button",
      { type: "button", class: "step", onclick: () => page.selectRow("node", index), ondblclick: () => page.go("timeline"), title: brief(row.node || row.name, 300) },
      fill,
      swatch,
      h("b", { class: "who" }, endKept(names[i])),
      h("span", null, f.time(row.usual_ns)),
      h("span", { class: "who faint", dir: "auto" }, brief(row.name, 60)),
      h("span", { class: "faint" }, f.percent(row.usual_share)),
    );
  });
  const mark = (): void => {
    const { dark } = theme();
    const chosen = new Set<number>();
    for (const step of page.selection.steps) chosen.add(p.steps[step].rows[1]);
    items.forEach((item, i) => {
      (item.children[1] as HTMLElement).style.background = opColor(p, rows[i].row.op, dark);
      item.setAttribute("aria-pressed", String(chosen.has(rows[i].index)));
    });
  };
  mark();
  const shown = items.length;
  const sum = rows.slice(0, shown).reduce((total, { row }) => total + row.usual_share, 0);
  return {
    element: h(
      "div",
      { class: "steps" },
      common ? h("p", { class: "faint", dir: "auto" }, `all in ${brief(common, 80)}`) : null,
      items,
      shown ? h("p", { class: "faint" }, `${f.percent(sum)} of a run in ${shown} of ${f.count(rows.length)} steps. `, button("All of them", () => page.go("operators", { by: "node" }), { class: "linklike" })) : h("p", { class: "faint" }, "No operator was recorded."),
    ),
    mark,
  };
}
