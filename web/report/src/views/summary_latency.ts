// SPDX-License-Identifier: Apache-2.0
// How long the runs took: a histogram with the median and the 99th percentile, and each run at its place in time, where
// drift and outliers show.
import { type Chart, type Charts, extent, label, part, ticks, xAxis, yAxis } from "../chart";
import type { Theme } from "../colors";
import { s } from "../dom";
import * as f from "../format";
import type { Profile } from "../profile";

const FENCE = 5; // distances between the quartiles beyond which a run is far from all others

export interface Sample {
  name: string;
  wall: Float64Array;
  p50: number;
  p99: number;
  color: string;
}

/** How many values lie in each of equally wide bins from low to high; the last counts what is above, too. */
export function histogram(wall: Float64Array, low: number, high: number, bins: number): Uint32Array {
  const counts = new Uint32Array(bins);
  const scale = high > low ? bins / (high - low) : 0;
  for (let i = 0; i < wall.length; i++) counts[Math.min(bins - 1, Math.max(0, Math.floor((wall[i] - low) * scale)))]++;
  return counts;
}

/** Up to where runs are usual: the 99th percentile, unless that is an outlier itself, as it is of few runs. */
function usualOf({ wall, p99 }: Sample): number {
  const sorted = Float64Array.from(wall).sort();
  const at = (q: number): number => sorted[Math.floor(q * (sorted.length - 1))] ?? 0;
  const [low, high] = [at(0.25), at(0.75)];
  return high > low ? Math.min(p99, high + FENCE * (high - low)) : p99;
}

/** What the axis shows. A few far outliers would press the rest into one bar, so they are counted in the last one. */
export function latencyRange(sets: Sample[]): { low: number; high: number; cut: boolean } {
  let low = Infinity;
  let high = 0;
  let usual = 0;
  for (const set of sets) {
    const [least, most] = extent(set.wall);
    low = Math.min(low, least);
    high = Math.max(high, most);
    usual = Math.max(usual, usualOf(set));
  }
  const room = usual + 0.35 * (usual - low);
  const cut = high > room && usual > low; // then the axis ends at `room`
  if (cut) high = room;
  if (!(high > low)) [low, high] = [low * 0.95, low * 1.05 || 1];
  return { low, high, cut };
}

/** One or two histograms on one axis. */
export function drawHistogram(svg: SVGSVGElement, width: number, t: Theme, sets: Sample[]): number {
  const { low, high, cut } = latencyRange(sets);
  const most = Math.max(...sets.map((set) => set.wall.length));
  const bins = Math.min(60, Math.max(8, Math.ceil(Math.sqrt(most) * 1.5)));
  const counts = sets.map((set) => histogram(set.wall, low, high, bins));
  // Two sets rarely have as many runs: then a bar is a share of its own set.
  const unit = sets.map((set) => (sets.length > 1 ? set.wall.length || 1 : 1));
  const tallest = Math.max(...counts.map((c, k) => extent(c)[1] / unit[k])) || 1;
  const marks = marksOf(sets, t, high);
  const top = 10 + 14 * marks.length;
  const bottom = top + 130;
  const right = width - 24;
  const left = 56;
  const x = (v: number): number => left + ((v - low) / (high - low)) * (right - left);
  const y = (n: number): number => bottom - (n / tallest) * (bottom - top);
  if (sets.length > 1) yAxis(svg, ticks(0, tallest, 3), y, left, right, f.percent);
  else yAxis(svg, ticks(0, tallest, 3).filter(Number.isInteger), y, left, right, f.count);
  xAxis(svg, ticks(low, high, (right - left) / 90), x, bottom, bottom + 4, f.mark);
  const step = (high - low) / bins;
  counts.forEach((list, k) => {
    for (let i = 0; i < bins; i++) {
      if (!list[i]) continue;
      const from = low + i * step;
      const height = bottom - y(list[i] / unit[k]);
      const bar = s("rect", {
        x: x(from) + 0.5,
        y: bottom - height,
        width: Math.max(1, x(from + step) - x(from) - 1),
        height,
        fill: sets[k].color,
        "fill-opacity": sets.length > 1 ? 0.55 : 0.85,
      });
      const above = cut && i === bins - 1;
      const runs = `${f.count(list[i])} ${list[i] === 1 ? "run" : "runs"}`;
      svg.append(part(bar, [`${sets.length > 1 ? `${sets[k].name}: ` : ""}${runs}`, above ? `${f.time(from)} and above` : `${f.time(from)} … ${f.time(from + step)}`]));
    }
  });
  marks.forEach((mark, line) => {
    const at = Math.min(right, Math.max(left, x(mark.v)));
    const anchor = at < left + 90 ? "start" : at > right - 90 ? "end" : "middle";
    svg.append(
      s("line", { x1: at, x2: at, y1: 14 + 14 * line, y2: bottom, stroke: mark.color, "stroke-width": 1.5, "stroke-dasharray": mark.dash }),
      label(at, 11 + 14 * line, mark.text, anchor),
    );
  });
  return bottom + 24;
}

interface Mark {
  v: number;
  text: string;
  color: string;
  dash: string;
}
/** The median of each set; of a single one also the 99th percentile, with an arrow where it lies beyond the axis. Each
 * has its own line, so they never overlap. */
function marksOf(sets: Sample[], t: Theme, end: number): Mark[] {
  const marks = sets.map((set, k): Mark => ({
    v: set.p50,
    text: `${sets.length > 1 ? `${set.name}: ` : ""}median ${f.time(set.p50)}`,
    color: t.ink,
    dash: k ? "6 2" : "none",
  }));
  if (sets.length === 1 && sets[0].p99 > sets[0].p50) {
    marks.push({ v: sets[0].p99, text: `p99 ${f.time(sets[0].p99)}${sets[0].p99 > end ? " ►" : ""}`, color: t.bad, dash: "4 3" });
  }
  return marks;
}

/** Every run in order; beyond a few thousand, the least and the greatest per pixel. */
export function drawStrip(svg: SVGSVGElement, width: number, t: Theme, p: Profile, pick: (run: number) => void): number {
  const { wall, n } = p.runs;
  const [least, most] = extent(wall);
  const low = Math.max(0, least - 0.1 * (most - least || least));
  const high = most + 0.05 * (most - least || most) || 1;
  const left = 64;
  const right = width - 18;
  const top = 8;
  const bottom = top + 144;
  const x = (i: number): number => left + ((i + 0.5) / n) * (right - left);
  const y = (v: number): number => bottom - ((v - low) / (high - low)) * (bottom - top);
  yAxis(svg, ticks(low, high, 4), y, left, right, f.mark);
  xAxis(svg, ticks(1, n, (right - left) / 90).filter(Number.isInteger), (v) => x(v - 1), bottom, bottom + 4, f.count);
  const { p50 } = p.summary.wall;
  svg.append(s("line", { x1: left, x2: right, y1: y(p50), y2: y(p50), stroke: t.ink, "stroke-width": 1, "stroke-dasharray": "4 3" }));
  if (n <= 2000) dots(svg, p, x, y, t, pick);
  else columns(svg, wall, left, right, y, t);
  svg.append(label(right, Math.max(top + 10, y(p50) - 5), "median", "end"));
  return bottom + 24;
}

function dots(svg: SVGSVGElement, p: Profile, x: (i: number) => number, y: (v: number) => number, t: Theme, pick: (run: number) => void): void {
  const { wall, n } = p.runs;
  const r = n > 500 ? 1.6 : n > 100 ? 2.2 : 3;
  for (let i = 0; i < n; i++) {
    const dot = s("circle", { class: "pick", cx: x(i), cy: y(wall[i]), r, fill: wall[i] > p.summary.wall.p99 ? t.bad : t.accent });
    dot.addEventListener("click", () => pick(i));
    svg.append(part(dot, [`Measured run ${f.count(i + 1)}: ${f.time(wall[i])}`]));
  }
}

function columns(svg: SVGSVGElement, wall: Float64Array, left: number, right: number, y: (v: number) => number, t: Theme): void {
  const wide = Math.max(1, Math.floor(right - left));
  let path = "";
  for (let c = 0; c < wide; c++) {
    const from = Math.floor((c * wall.length) / wide);
    const to = Math.max(from + 1, Math.floor(((c + 1) * wall.length) / wide));
    const [least, most] = extent(wall.subarray(from, to));
    path += `M${left + c + 0.5} ${y(least).toFixed(1)}V${(y(most) - 1).toFixed(1)}`;
  }
  svg.append(s("path", { d: path, stroke: t.accent, "stroke-width": 1, fill: "none" }));
}

export function latencyCharts(charts: Charts, p: Profile, pick: (run: number) => void): [spread: Chart, strip: Chart] {
  const { wall } = p.summary;
  const spread = charts.add(
    `Histogram of the latency of ${p.runs.n} runs: median ${f.time(wall.p50)}, 99th percentile ${f.time(wall.p99)}, from ${f.time(wall.min)} to ${f.time(wall.max)}`,
    false,
    (svg, width, t) => drawHistogram(svg, width, t, [{ name: p.title, wall: p.runs.wall, p50: wall.p50, p99: wall.p99, color: t.accent }]),
  );
  const strip = charts.add(`Latency of each of ${p.runs.n} runs in the order in which they ran`, false, (svg, width, t) => drawStrip(svg, width, t, p, pick));
  return [spread, strip];
}
