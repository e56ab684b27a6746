// SPDX-License-Identifier: Apache-2.0
// The roofline itself: both axes logarithmic; bandwidths are slopes, peaks of arithmetic are ceilings.
import { brief, decades, label, part, xAxis, yAxis } from "../chart";
import { opColor, type Theme } from "../colors";
import { s } from "../dom";
import * as f from "../format";
import type { Profile, Row } from "../profile";

export interface Point {
  row: Row;
  index: number; // in rows.node
  x: number; // FLOP per byte
  y: number; // GFLOP/s
}

const CHOSEN = 1000; // as many of the selected ones are drawn on their own
const FOCUSABLE = 200; // by time; the others are one path, or thousands of elements would make the page slow

/** Steps with arithmetic, most time first. */
export function pointsOf(p: Profile): Point[] {
  const points: Point[] = [];
  p.rows.node.forEach((row, index) => {
    if (row.bracket || !(row.flops > 0) || !(row.bytes > 0) || !(row.usual_ns > 0)) return;
    points.push({ row, index, x: row.flops / row.bytes, y: row.flops / row.usual_ns });
  });
  return points.sort((a, b) => b.row.usual_ns - a.row.usual_ns);
}

interface Roof {
  name: string;
  value: number; // GFLOP/s or GB/s
}
const ceilings = (p: Profile): Roof[] =>
  Object.entries(p.machine.peak_gops)
    .filter(([, v]) => v > 0)
    .map(([name, value]) => ({ name, value }))
    .sort((a, b) => b.value - a.value);

function slopes(p: Profile): Roof[] {
  const list: Roof[] = p.machine.caches.map((c, i) => ({ name: `L${i + 2}`, value: c.gbps }));
  list.push({ name: "memory", value: p.machine.peak_gbps });
  return list.filter((roof) => roof.value > 0).sort((a, b) => b.value - a.value);
}

interface Range {
  x: [number, number];
  y: [number, number];
}
/** Room for all points and for the corners of the roofs, in whole steps of √10. */
function rangeOf(points: Point[], tops: Roof[], sides: Roof[]): Range {
  const x: [number, number] = [Infinity, 0];
  const y: [number, number] = [Infinity, 0];
  const put = (range: [number, number], v: number): void => {
    range[0] = Math.min(range[0], v);
    range[1] = Math.max(range[1], v);
  };
  for (const point of points) {
    put(x, point.x);
    put(y, point.y);
  }
  for (const roof of tops) y[1] = Math.max(y[1], roof.value);
  if (tops.length && sides.length) put(x, tops[0].value / sides[sides.length - 1].value);
  const round = ([a, b]: [number, number]): [number, number] => [10 ** (Math.floor(Math.log10(a / 1.3) * 2) / 2), 10 ** (Math.ceil(Math.log10(b * 1.5) * 2) / 2)];
  return { x: round(x), y: round(y) };
}

export function drawRoofline(svg: SVGSVGElement, width: number, t: Theme, p: Profile, points: Point[], chosen: Set<number>, pick: (point: Point) => void): number {
  const tops = ceilings(p);
  const sides = slopes(p);
  const range = rangeOf(points, tops, sides);
  const left = 84;
  const right = width - 12;
  const top = 12;
  const bottom = top + Math.min(460, Math.max(240, width * 0.42));
  const scale = (v: number, [a, b]: [number, number]): number => Math.log(v / a) / Math.log(b / a);
  const x = (v: number): number => left + scale(v, range.x) * (right - left);
  const y = (v: number): number => bottom - scale(v, range.y) * (bottom - top);
  xAxis(svg, decades(...range.x, (right - left) / 70), x, top, bottom, power);
  yAxis(svg, decades(...range.y, 8), y, left, right, (v) => f.rate(v * 1e9, "FLOP/s"));
  svg.append(label(right, bottom + 32, "FLOP per byte", "end", true));
  drawSlopes(svg, t, sides, tops[0]?.value ?? range.y[1], range, x, y);
  drawCeilings(svg, t, tops, sides[0]?.value ?? 0, range, x, y, right);
  drawPoints(svg, t, p, points, chosen, x, y, pick);
  return bottom + 40;
}

const power = (v: number): string => (v >= 1 ? f.grouped(v) : String(Number(v.toPrecision(1))));

function drawSlopes(svg: SVGSVGElement, t: Theme, sides: Roof[], most: number, range: Range, x: (v: number) => number, y: (v: number) => number): void {
  const texts: SVGTextElement[] = [];
  sides.forEach((roof, i) => {
    const from = Math.max(range.x[0], range.y[0] / roof.value);
    const to = Math.min(range.x[1], most / roof.value);
    if (!(to > from)) return;
    const [x1, y1, x2, y2] = [x(from), y(from * roof.value), x(to), y(to * roof.value)];
    const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    // The slowest has its words below it, away from the others; a rim of paper keeps all readable where lines are close.
    const below = i > 0 && i === sides.length - 1;
    const text = label(0, below ? 15 : -5, `${roof.name} ${f.rate(roof.value * 1e9, "B/s")}`, "start", true);
    const along = 0.04 + 0.02 * i;
    text.setAttribute("transform", `translate(${x1 + (x2 - x1) * along} ${y1 + (y2 - y1) * along}) rotate(${angle})`);
    for (const [name, value] of Object.entries({ stroke: t.panel, "stroke-width": "4", "paint-order": "stroke" })) text.setAttribute(name, value);
    texts.push(text);
    svg.append(s("line", { x1, y1, x2, y2, stroke: t.faint, "stroke-width": 1.5, "stroke-dasharray": roof.name === "memory" ? "none" : "5 3" }));
  });
  svg.append(...texts);
}

function drawCeilings(svg: SVGSVGElement, t: Theme, tops: Roof[], fastest: number, range: Range, x: (v: number) => number, y: (v: number) => number, right: number): void {
  let free = -Infinity; // where the next label may stand
  for (const roof of tops) {
    const from = fastest > 0 ? Math.min(range.x[1], Math.max(range.x[0], roof.value / fastest)) : range.x[0];
    const at = y(roof.value);
    const base = Math.max(at - 5, free);
    free = base + 14;
    svg.append(
      s("line", { x1: x(from), x2: right, y1: at, y2: at, stroke: t.faint, "stroke-width": 1.5 }),
      label(right, base, `${brief(roof.name, 24)} ${f.rate(roof.value * 1e9, "FLOP/s")}`, "end", true),
    );
  }
}

function drawPoints(svg: SVGSVGElement, t: Theme, p: Profile, points: Point[], chosen: Set<number>, x: (v: number) => number, y: (v: number) => number, pick: (point: Point) => void): void {
  let small = "";
  for (const { x: fx, y: fy } of points.slice(FOCUSABLE)) small += `M${x(fx).toFixed(1)} ${y(fy).toFixed(1)}h0`;
  if (small) svg.append(s("path", { d: small, stroke: t.faint, "stroke-width": 4, "stroke-linecap": "round", "stroke-opacity": 0.6, fill: "none" }));
  // Those that are chosen come last, so that nothing covers them.
  const shown = points.filter((point, i) => i < FOCUSABLE || (i < CHOSEN && chosen.has(point.index)));
  shown.sort((a, b) => Number(chosen.has(a.index)) - Number(chosen.has(b.index)) || b.row.usual_ns - a.row.usual_ns);
  for (const point of shown) {
    const { row } = point;
    const isChosen = chosen.has(point.index);
    const circle = s("circle", {
      cx: x(point.x),
      cy: y(point.y),
      r: Math.max(3, 34 * Math.sqrt(row.usual_share)),
      fill: opColor(p, row.op, t.dark),
      "fill-opacity": isChosen ? 1 : 0.65,
      stroke: isChosen ? t.ink : t.panel,
      "stroke-width": isChosen ? 3 : 1,
    });
    const near = row.roofline === null ? [] : [`${f.percent(row.roofline)} of the peak, bound by ${row.bound}`];
    const lines = [
      brief(`${row.name} ${row.node}`, 120),
      `${f.gflops(row.flops, row.usual_ns)} at ${f.digits(point.x)} FLOP per byte`,
      ...near,
      `${f.time(row.usual_ns)} per run, ${f.percent(row.usual_share)}`,
    ];
    svg.append(part(circle, lines, `node-${point.index}`, () => pick(point)));
  }
}
