// SPDX-License-Identifier: Apache-2.0
// Where the time of a run goes: one bar cut into operator types, the list that explains it, and how the operators and
// what lies between them add up to the latency.
import { type BarRow, barRows, brief, type Chart, type Charts, fit, hatch, label, part } from "../chart";
import { inkOn, opColor, type Theme, theme } from "../colors";
import { h, s } from "../dom";
import * as f from "../format";
import type { Profile, Row } from "../profile";
import type { Page } from "../state";

const SHOWN = 8; // as many as there are colours

export interface Piece {
  name: string;
  ns: number;
  index: number; // the row of rows.op; -1: several
  bracket: boolean;
  op: string;
}

/** Types in the order of their time, the small ones together, then what is no operator's. */
export function pieces(p: Profile): Piece[] {
  const of = (row: Row, index: number): Piece => ({ name: row.name, ns: row.usual_ns, index, bracket: Boolean(row.bracket), op: row.op });
  const all = p.rows.op.map(of).filter((x) => x.ns > 0);
  const types = all.filter((x) => !x.bracket).sort((a, b) => b.ns - a.ns);
  const rest = types.splice(SHOWN);
  if (rest.length === 1) types.push(rest[0]);
  else if (rest.length) {
    const ns = rest.reduce((sum, x) => sum + x.ns, 0);
    types.push({ name: `other (${rest.length} types)`, ns, index: -1, bracket: false, op: "" });
  }
  return [...types, ...all.filter((x) => x.bracket).sort((a, b) => b.ns - a.ns)];
}

export const total = (list: Piece[]): number => list.reduce((sum, x) => sum + x.ns, 0);

/** A bar of pieces, `full` ns in the whole width; the text on a piece only where it has room. */
export function drawShares(svg: SVGSVGElement, width: number, t: Theme, p: Profile, list: Piece[], y: number, full: number, pick: ((x: Piece) => void) | null, chosen: (x: Piece) => boolean): void {
  const hatched = hatch(svg, t);
  const whole = total(list) || 1;
  let x = 0;
  for (const piece of list) {
    const w = (piece.ns / full) * width;
    const fill = piece.bracket ? hatched : opColor(p, piece.op, t.dark);
    const lines = [brief(piece.name), `${f.time(piece.ns)}, ${f.percent(piece.ns / whole)} of the run`];
    const box = s("g", null, s("rect", { x, y, width: Math.max(0.5, w - 1), height: 44, fill, stroke: chosen(piece) ? t.ink : "none", "stroke-width": 3 }));
    if (w > 56) {
      const name = label(x + 8, y + 19, fit(piece.name, w - 14));
      const figure = label(x + 8, y + 35, f.percent(piece.ns / whole));
      name.setAttribute("font-weight", "600");
      if (!piece.bracket) for (const text of [name, figure]) text.style.fill = inkOn(fill);
      else box.append(s("rect", { x: x + 4, y: y + 6, width: Math.min(w - 10, 92), height: 33, fill: t.panel }));
      box.append(name, figure);
    }
    svg.append(part(box, lines, `piece-${piece.index}`, pick && piece.index >= 0 ? () => pick(piece) : undefined));
    x += w;
  }
}

/** The op rows that hold what is selected. */
function chosenRows(page: Page): Set<number> {
  const { selection, profile } = page;
  const rows = new Set<number>();
  if (selection.kind === "op") rows.add(selection.index);
  else for (const step of selection.steps) rows.add(profile.steps[step].rows[0]);
  return rows;
}

export function shareChart(charts: Charts, page: Page): Chart {
  const p = page.profile;
  const list = pieces(p);
  const whole = total(list) || 1;
  const said = list.slice(0, 5).map((x) => `${brief(x.name, 40)} ${f.percent(x.ns / whole)}`).join(", ");
  return charts.add(`Time of a run by operator type: ${said}`, true, (svg, width, t) => {
    const chosen = chosenRows(page);
    drawShares(svg, width, t, p, list, 2, whole, (x) => page.selectRow("op", x.index), (x) => chosen.has(x.index));
    return 48;
  });
}

export interface Marked {
  element: HTMLElement;
  mark(): void;
}

export function legend(page: Page): Marked {
  const p = page.profile;
  const list = pieces(p);
  const whole = total(list) || 1;
  const items = list.map((piece) => {
    const swatch = h("span", { class: `swatch${piece.bracket ? " hatched" : ""}`, "aria-hidden": "true" });
    const words = [h("span", { class: "who", dir: "auto" }, brief(piece.name)), h("span", null, f.time(piece.ns)), h("span", { class: "faint" }, f.percent(piece.ns / whole))];
    return piece.index >= 0
      ? h("button", { type: "button", class: "share", onclick: () => page.selectRow("op", piece.index) }, swatch, words)
      : h("div", { class: "share" }, swatch, words);
  });
  const mark = (): void => {
    const { dark } = theme();
    const chosen = chosenRows(page);
    items.forEach((item, i) => {
      const piece = list[i];
      const swatch = item.firstElementChild as HTMLElement;
      if (!piece.bracket) swatch.style.background = opColor(p, piece.op, dark);
      if (item instanceof HTMLButtonElement) item.setAttribute("aria-pressed", String(chosen.has(piece.index)));
    });
  };
  mark();
  return { element: h("div", { class: "shares" }, items), mark };
}

/** Operators, then each kind of time between them, up to the mean; what recording took behind it. */
export function gapChart(charts: Charts, p: Profile): Chart {
  const mean = p.summary.wall.mean;
  const operators = p.rows.op.reduce((sum, row) => sum + (row.bracket ? 0 : row.mean_ns), 0);
  const brackets = p.rows.op.filter((row) => row.bracket && row.mean_ns > 0).sort((a, b) => b.mean_ns - a.mean_ns);
  const cost = p.summary.cost_ns ?? 0;
  return charts.add(`The operators take ${f.time(operators)} of the mean latency of ${f.time(mean)}`, false, (svg, width, t) => {
    const hatched = hatch(svg, t);
    const rows: BarRow[] = [];
    let at = 0;
    const put = (name: string, ns: number, fill: string, lines: string[]): void => {
      rows.push({ key: name, name, from: at, to: at + ns, text: f.time(ns), fill, lines: [name, ...lines] });
      at += ns;
    };
    put("Sum of the operators", operators, t.accent, [`${f.time(operators)} on average, ${f.percent(operators / mean)} of the mean`]);
    for (const row of brackets) put(brief(row.name), row.mean_ns, hatched, [`${f.time(row.mean_ns)} on average, ${f.percent(row.share)} of the mean`]);
    rows.push({ key: "mean", name: "Mean latency", from: 0, to: mean, text: f.time(mean), fill: t.ink, lines: ["Mean latency", "what the rows add up to"], strong: true });
    if (cost > 0) rows.push({ key: "cost", name: "Recorder, left out", from: mean, to: mean + cost, text: f.time(cost), fill: t.grey, lines: ["What recording took per run", "in no row and not in the latency"] });
    return barRows(svg, width, t, rows, { low: 0, high: mean + cost });
  });
}
