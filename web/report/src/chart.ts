// SPDX-License-Identifier: Apache-2.0
// Charts in SVG: drawn at the width of their box, so that text keeps its size, and drawn again when the box or the
// colours change. What can be chosen in one is a button for the keyboard and for screen readers.
import { onTheme, type Theme, theme } from "./colors";
import { clear, h, s, tooltip } from "./dom";
import { plain, shorten } from "./format";

/** Draws into an empty picture of this width and returns the height it needs. */
export type Draw = (svg: SVGSVGElement, width: number, t: Theme) => number;

export interface Chart {
  element: HTMLElement;
  svg: SVGSVGElement;
  redraw(): void;
}

/** The charts of one view. */
export class Charts {
  private readonly redraws = new Map<Element, (always: boolean) => void>();
  private readonly watch = new ResizeObserver((entries) => {
    for (const entry of entries) this.redraws.get(entry.target)?.(false);
  });
  private readonly unwatch = onTheme(() => this.redraw());

  /** `picks`: parts of it can be chosen. A picture without such parts is one image to a screen reader. */
  add(label: string, picks: boolean, draw: Draw): Chart {
    const svg = s("svg", { role: picks ? "group" : "img", "aria-label": label, width: "100%", height: 0 });
    const element = h("div", { class: "chart" }, svg);
    let drawn = 0;
    const redraw = (always: boolean): void => {
      const width = Math.floor(element.clientWidth);
      if (!width || (!always && width === drawn)) return;
      drawn = width;
      const focused = focusedKey(svg);
      clear(svg);
      const height = Math.ceil(draw(svg, width, theme()));
      svg.setAttribute("height", String(height));
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      if (focused !== null) focusKey(svg, focused);
    };
    this.redraws.set(element, redraw);
    this.watch.observe(element);
    return { element, svg, redraw: () => redraw(true) };
  }

  redraw(): void {
    for (const redraw of this.redraws.values()) redraw(true);
  }
  close(): void {
    this.watch.disconnect();
    this.unwatch();
    tooltip(null);
  }
}

function focusedKey(svg: SVGSVGElement): string | null {
  const active = document.activeElement;
  return active && svg.contains(active) ? active.getAttribute("data-key") : null;
}
function focusKey(svg: SVGSVGElement, key: string): void {
  for (const element of svg.querySelectorAll<SVGElement>("[data-key]")) {
    if (element.getAttribute("data-key") === key) return element.focus({ preventScroll: true });
  }
}

/** A text of the profile, short and harmless. */
export const brief = (text: string, most = 60): string => plain(shorten(text, most));

const WIDE = 12.5; // px of a character at 12 px that is not ASCII, and of one that is
const NARROW = 6.6;
/** As much of a text as goes into so many pixels. */
export function fit(text: string, px: number): string {
  const shown = brief(text, Math.max(1, Math.floor(px / NARROW)));
  let width = 0;
  for (const c of shown) width += c > "\u024f" ? WIDE : NARROW;
  return width <= px ? shown : brief(text, Math.max(1, Math.floor((px / width) * Array.from(shown).length)));
}

/** A tooltip for a part of a chart; with `pick` also a button with a key that survives a redraw. */
export function part<T extends SVGElement>(element: T, lines: string[], key = "", pick?: () => void): T {
  element.addEventListener("pointermove", (e) => tooltip(e, lines));
  element.addEventListener("pointerleave", () => tooltip(null));
  if (!pick) return element;
  element.classList.add("pick");
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", lines.join(", "));
  element.setAttribute("data-key", key);
  element.addEventListener("click", pick);
  element.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault();
    e.stopPropagation();
    pick();
  });
  element.addEventListener("focus", () => {
    const box = element.getBoundingClientRect();
    if (element.matches(":focus-visible")) tooltip({ clientX: box.right, clientY: box.top }, lines);
  });
  element.addEventListener("blur", () => tooltip(null));
  return element;
}

/** Round numbers in a range, about so many. */
export function ticks(low: number, high: number, about: number): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, about);
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * (rough / size > 5 ? 10 : rough / size > 2 ? 5 : rough / size > 1 ? 2 : 1);
  const list: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) list.push(k * step);
  return list;
}

/** Powers of ten in a range, thinned to about so many. */
export function decades(low: number, high: number, about: number): number[] {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, about)));
  const list: number[] = [];
  for (let k = first; k <= last; k += step) list.push(10 ** k);
  return list;
}

export function label(x: number, y: number, text: string, anchor: "start" | "middle" | "end" = "start", faint = false): SVGTextElement {
  return s("text", { x, y, "text-anchor": anchor, class: faint ? "faint" : null }, text);
}

/** What stands at a mark of an axis; marks are `step` apart, which says how many digits tell them apart. */
export type MarkText = (v: number, step: number) => string;
const stepOf = (list: number[]): number => (list.length > 1 ? list[1] - list[0] : 0);

/** An x axis at height y: grid lines upwards to `top` and figures below. */
export function xAxis(svg: Element, list: number[], at: (v: number) => number, top: number, y: number, text: MarkText): void {
  const step = stepOf(list);
  for (const v of list) {
    const x = at(v);
    svg.append(s("line", { class: "axis", x1: x, x2: x, y1: top, y2: y }), label(x, y + 15, text(v, step), "middle", true));
  }
}
/** A y axis: grid lines from `left` to `right` and figures on the left. */
export function yAxis(svg: Element, list: number[], at: (v: number) => number, left: number, right: number, text: MarkText): void {
  const step = stepOf(list);
  for (const v of list) {
    const y = at(v);
    svg.append(s("line", { class: "axis", x1: left, x2: right, y1: y, y2: y }), label(left - 6, y + 4, text(v, step), "end", true));
  }
}

let patterns = 0;
/** A hatched fill: what is no operator's, told apart without colour. */
export function hatch(svg: SVGSVGElement, t: Theme): string {
  const id = `hatch-${patterns++}`;
  svg.append(
    s(
      "defs",
      null,
      s(
        "pattern",
        { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        s("rect", { width: 6, height: 6, fill: t.panel }),
        s("line", { x1: 1, x2: 1, y1: 0, y2: 6, stroke: t.grey, "stroke-width": 2.5 }),
      ),
    ),
  );
  return `url(#${id})`;
}

export interface BarRow {
  key: string;
  name: string;
  from: number;
  to: number;
  text: string; // the figure on the right
  fill: string;
  lines: string[]; // the tooltip
  indent?: number; // levels
  strong?: boolean;
  chosen?: boolean;
  pick?: () => void;
}
export interface BarScale {
  low: number;
  high: number;
  figure?: number; // px for the figures; 92 unless told
  axis?: MarkText;
}

const LINE = 26; // px per row of bars

/** Rows of a name, a bar from … to on one scale, and a figure. */
export function barRows(svg: SVGSVGElement, width: number, t: Theme, rows: BarRow[], scale: BarScale): number {
  const longest = rows.reduce((most, row) => Math.max(most, 24 + Math.min(60, row.name.length) * NARROW + 10 * (row.indent ?? 0)), 60);
  const names = Math.min(260, width * 0.4, longest);
  const figure = scale.figure ?? 92;
  const right = Math.max(names + 20, width - figure);
  const span = scale.high - scale.low || 1;
  const at = (v: number): number => names + ((v - scale.low) / span) * (right - names);
  const bottom = rows.length * LINE + 4;
  if (scale.axis) xAxis(svg, ticks(scale.low, scale.high, (right - names) / 110), at, 0, bottom, scale.axis);
  rows.forEach((row, i) => {
    const y = i * LINE;
    const x = Math.min(at(row.from), at(row.to));
    const indent = Math.min((row.indent ?? 0) * 10, names / 2);
    const line = s("g", null);
    line.append(
      s("rect", { x: 0, y: y + 1, width, height: LINE - 2, rx: 4, fill: t.accent, "fill-opacity": row.chosen ? 0.16 : 0 }),
      label(4 + indent, y + 17, fit(row.name, names - indent - 12)),
      s("rect", { x, y: y + 5, width: Math.max(1.5, Math.abs(at(row.to) - at(row.from))), height: LINE - 10, rx: 2, fill: row.fill }),
      label(width - 4, y + 17, row.text, "end"),
    );
    if (row.strong) for (const text of line.querySelectorAll("text")) text.setAttribute("font-weight", "600");
    svg.append(part(line, row.lines, row.key, row.pick));
  });
  return bottom + (scale.axis ? 24 : 0);
}

/** Least and greatest; of nothing 0 and 0. */
export function extent(values: ArrayLike<number>): [low: number, high: number] {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
  }
  return low <= high ? [low, high] : [0, 0];
}
