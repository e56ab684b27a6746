// SPDX-License-Identifier: Apache-2.0
// Bytes over time: the counters of a profile as stepped lines. Of many points each pixel gets its first, lowest, highest
// and last one, computed anew when the window of time changes, so no peak is lost.
import uPlot from "uplot";
import { theme } from "../colors";
import { button, h, perFrame } from "../dom";
import * as f from "../format";
import type { Surface } from "../picture";
import { type Profile, stepNode, stepTitle } from "../profile";
import type { Page } from "../state";
import { TEXT } from "./graph_draw";
import { drawingButtons } from "./graph_picture";

const MANY = 20_000;
const HEIGHT = 220;

interface Line {
  name: string;
  at: Float64Array;
  value: Float64Array;
  step: Int32Array;
  peak: number; // position
}
interface Chart {
  title: string;
  names: string[]; // taken at the same times
  why: string;
}
const CHARTS: Chart[] = [
  { title: "Live bytes over time", names: ["live bytes"], why: "What the values of all runs under way take by their plans, workspace included and weights not." },
  { title: "Allocated bytes over time", names: ["used bytes", "allocated bytes"], why: "What values and weights use, and what the context's allocator holds for them." },
];

function lineOf(p: Profile, name: string): Line | null {
  const { counters: c } = p;
  const ids = new Uint8Array(p.strings.length);
  p.strings.forEach((text, i) => void (ids[i] = text === name ? 1 : 0));
  let n = 0;
  for (let i = 0; i < c.n; i++) n += ids[c.name[i]];
  if (!n) return null;
  const line: Line = { name, at: new Float64Array(n), value: new Float64Array(n), step: new Int32Array(n), peak: 0 };
  let k = 0;
  for (let i = 0; i < c.n; i++) {
    if (!ids[c.name[i]]) continue;
    line.at[k] = c.at[i];
    line.value[k] = c.value[i];
    line.step[k] = c.step[i];
    k++;
  }
  sortByTime(line);
  for (let i = 1; i < n; i++) if (line.value[i] > line.value[line.peak]) line.peak = i;
  return line;
}

/** Several threads count: their figures may have been written a little out of order. */
function sortByTime(line: Line): void {
  const { at, value, step } = line;
  let sorted = true;
  for (let i = 1; i < at.length && sorted; i++) sorted = at[i] >= at[i - 1];
  if (sorted) return;
  const order = Uint32Array.from(at, (_, i) => i).sort((a, b) => at[a] - at[b] || a - b);
  line.at = Float64Array.from(order, (i) => at[i]);
  line.value = Float64Array.from(order, (i) => value[i]);
  line.step = Int32Array.from(order, (i) => step[i]);
}

/** First position whose time is not before `t`. */
function from(at: Float64Array, t: number): number {
  let a = 0;
  let b = at.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (at[m] < t) a = m + 1;
    else b = m;
  }
  return a;
}

/** Positions worth drawing between two times: all of a few, four per pixel of many. */
export function thinned(line: { at: Float64Array; value: Float64Array }, t0: number, t1: number, pixels: number): number[] {
  const a = Math.max(0, from(line.at, t0) - 1);
  const b = Math.min(line.at.length, from(line.at, t1) + 1);
  const keep: number[] = [];
  if (b - a <= MANY) {
    for (let i = a; i < b; i++) keep.push(i);
    return keep;
  }
  for (let k = 0; k < pixels; k++) {
    const lo = a + Math.floor(((b - a) * k) / pixels);
    const hi = a + Math.floor(((b - a) * (k + 1)) / pixels);
    if (lo === hi) continue;
    let low = lo;
    let high = lo;
    for (let i = lo; i < hi; i++) {
      if (line.value[i] < line.value[low]) low = i;
      if (line.value[i] > line.value[high]) high = i;
    }
    for (const i of [lo, Math.min(low, high), Math.max(low, high), hi - 1]) if (keep[keep.length - 1] !== i) keep.push(i);
  }
  return keep;
}

/** Lines on one axis of time. Each has its first and last point, so that the chart knows how far it can zoom out. */
function aligned(lines: Line[], t0: number, t1: number, pixels: number): uPlot.AlignedData {
  const picked = lines.map((line) => [...new Set([0, ...thinned(line, t0, t1, pixels), line.at.length - 1])]);
  const tables = lines.map((line, k): uPlot.AlignedData => [picked[k].map((i) => line.at[i]), picked[k].map((i) => line.value[i])]);
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

class CounterChart {
  readonly element: HTMLElement;
  private readonly box = h("div", { class: "memory-chart" });
  private readonly reading = h("p", { class: "faint" });
  private readonly lines: Line[];
  private readonly end: number;
  private plot: uPlot | null = null;
  private sampled = "";

  constructor(page: Page, chart: Chart, lines: Line[]) {
    const p = page.profile;
    this.lines = lines;
    this.end = Math.max(1, p.end);
    const top = lines.reduce((a, b) => (b.value[b.peak] > a.value[a.peak] ? b : a));
    const step = p.steps[top.step[top.peak]];
    const peak = `The peak of ${top.name} is ${f.bytes(top.value[top.peak])} at ${f.time(top.at[top.peak])}`;
    this.box.setAttribute("role", "application");
    this.box.setAttribute("tabindex", "0");
    this.box.setAttribute("aria-label", `${chart.title}. ${peak}. W and S zoom, A and D move, 0 shows all.`);
    this.box.addEventListener("keydown", (e) => this.key(e));
    const picture = (): { width: number; height: number; draw: (s: Surface) => void } => ({ width: 900, height: 260, draw: (s) => this.draw(s) });
    this.element = h(
      "section",
      { class: "card wide" },
      h("h2", null, chart.title, drawingButtons(chart.title.toLowerCase().replaceAll(" ", "-"), picture)),
      h("p", { class: "faint" }, chart.why),
      this.box,
      h("div", { class: "legend" }, lines.map((line, k) => h("span", null, k ? "┅ " : "━ ", line.name))),
      h(
        "p",
        null,
        step ? `${peak}, after ` : `${peak}.`,
        step ? button(f.shorten(f.plain(`${stepTitle(step)} ${stepNode(step)}`), 60), () => page.selectStep(top.step[top.peak]), { class: "linklike" }) : null,
      ),
      this.reading,
    );
  }

  private colors(): string[] {
    const { accent, bad } = theme();
    return [accent, bad];
  }

  /** Anew: at first, in other colours, in another width. */
  show(): void {
    const width = this.box.clientWidth;
    if (!width) return;
    this.plot?.destroy();
    this.sampled = "";
    const colors = theme();
    const axis: uPlot.Axis = { stroke: colors.faint, grid: { stroke: colors.line, width: 1 }, ticks: { stroke: colors.line, width: 1 }, font: TEXT };
    this.plot = new uPlot(
      {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
        scales: { x: { time: false }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
        axes: [
          { ...axis, values: (_, splits) => splits.map((v) => f.mark(v, splits[1] - splits[0])), space: 90 },
          { ...axis, values: (_, splits) => splits.map((v) => f.bytes(v)), incrs: POWERS, size: 76 },
        ],
        series: [
          {},
          ...this.lines.map((line, k): uPlot.Series => ({
            label: line.name,
            stroke: this.colors()[k],
            width: 1.5,
            ...(k ? { dash: [6, 3] } : { fill: `${this.colors()[k]}22` }),
            paths: (uPlot.paths.stepped as uPlot.Series.SteppedPathBuilderFactory)({ align: 1 }),
            spanGaps: true,
            points: { show: false },
          })),
        ],
        hooks: {
          draw: [(u) => this.mark(u)],
          setCursor: [(u) => this.read(u)],
          setScale: [(_, key) => void (key === "x" && this.sample())],
        },
      },
      aligned(this.lines, 0, this.end, width),
      this.box,
    );
  }

  /** The points for the window of time that is in sight now. Not inside of uPlot's own change, which would undo it. */
  private readonly sample = perFrame(() => {
    const u = this.plot;
    const x = u?.scales["x"];
    if (!u || typeof x?.min !== "number" || typeof x.max !== "number") return;
    if (this.sampled === `${x.min} ${x.max}` || this.lines.every((line) => line.at.length <= MANY)) return;
    const { min, max } = x;
    this.sampled = `${min} ${max}`; // setting the same window again asks once more
    u.batch(() => {
      u.setData(aligned(this.lines, min, max, u.width), false);
      u.setScale("x", { min, max });
    });
  });
  private key(e: KeyboardEvent): void {
    const x = this.plot?.scales["x"];
    const factor: Record<string, number> = { w: 0.8, "+": 0.8, "=": 0.8, s: 1.25, "-": 1.25, a: 1, d: 1, "0": Infinity };
    const key = e.key.toLowerCase();
    if (!(key in factor) || e.ctrlKey || e.metaKey || e.altKey || typeof x?.min !== "number" || typeof x.max !== "number") return;
    e.preventDefault();
    e.stopPropagation();
    const first = this.lines[0].at[0];
    const whole = Math.max(1, this.lines[0].at[this.lines[0].at.length - 1] - first);
    const size = Math.min(whole, (x.max - x.min) * factor[key]);
    const shift = key === "a" ? -size / 5 : key === "d" ? size / 5 : 0;
    const min = Math.max(first, Math.min(first + whole - size, (x.min + x.max - size) / 2 + shift));
    this.plot?.setScale("x", { min, max: min + size });
  }

  private mark(u: uPlot): void {
    const ratio = window.devicePixelRatio || 1;
    this.lines.forEach((line, k) => {
      const x = u.valToPos(line.at[line.peak], "x", true);
      const y = u.valToPos(line.value[line.peak], "y", true);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
      u.ctx.save();
      u.ctx.strokeStyle = this.colors()[k];
      u.ctx.fillStyle = theme().paper;
      u.ctx.lineWidth = 2 * ratio;
      u.ctx.beginPath();
      u.ctx.arc(x, y, 4 * ratio, 0, 2 * Math.PI);
      u.ctx.fill();
      u.ctx.stroke();
      u.ctx.restore();
    });
  }
  private read(u: uPlot): void {
    const { left } = u.cursor;
    if (left === undefined || left < 0) {
      this.reading.textContent = "Drag over the picture to zoom, double click to see all.";
      return;
    }
    const t = u.posToVal(left, "x");
    const said = this.lines.map((line) => {
      const i = from(line.at, t + 1e-9) - 1;
      return `${line.name} ${i < 0 ? "–" : f.bytes(line.value[i])}`;
    });
    this.reading.textContent = `At ${f.time(t)}: ${said.join(", ")}`;
  }

  /** The same as a picture of its own: all of the time. */
  private draw(s: Surface): void {
    const colors = theme();
    const [left, top, width, height] = [84, 12, 800, 210];
    const most = this.lines.reduce((a, b) => Math.max(a, b.value[b.peak]), 1);
    const x = (t: number): number => left + (t / this.end) * width;
    const y = (v: number): number => top + height - (v / most) * height;
    s.font = TEXT;
    s.fillStyle = colors.faint;
    for (let k = 0; k <= 4; k++) {
      s.strokeStyle = colors.line;
      s.textAlign = "right";
      s.line([left, y((most * k) / 4), left + width, y((most * k) / 4)]);
      s.text(f.bytes((most * k) / 4), left - 8, y((most * k) / 4) + 4);
      s.textAlign = k === 4 ? "right" : "center";
      s.text(f.time((this.end * k) / 4), x((this.end * k) / 4), top + height + 18);
    }
    s.lineWidth = 1.5;
    this.lines.forEach((line, k) => {
      const points: number[] = [];
      for (const i of thinned(line, 0, this.end, width)) {
        if (points.length) points.push(x(line.at[i]), points[points.length - 1]);
        points.push(x(line.at[i]), y(line.value[i]));
      }
      s.strokeStyle = this.colors()[k];
      s.line(points);
      s.fillStyle = this.colors()[k];
      s.rect(x(line.at[line.peak]) - 3, y(line.value[line.peak]) - 3, 6, 6);
      s.textAlign = "left";
      s.text(`${line.name}, peak ${f.bytes(line.value[line.peak])}`, left + 8, top + 14 + 16 * k);
    });
  }

  close(): void {
    this.plot?.destroy();
    this.plot = null;
  }
}

/** The charts there are counters for. */
export function counterCharts(page: Page): CounterChart[] {
  const charts: CounterChart[] = [];
  for (const chart of CHARTS) {
    const lines = chart.names.map((name) => lineOf(page.profile, name)).filter((line): line is Line => line !== null);
    if (lines.length) charts.push(new CounterChart(page, chart, lines));
  }
  return charts;
}
