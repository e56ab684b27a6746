// SPDX-License-Identifier: Apache-2.0
// The timeline's picture, on a canvas or as SVG: lanes first, then what lies over them at the left and at the top.
import { inkOn } from "../colors";
import * as f from "../format";
import { niceStep, walk } from "../lanes";
import type { Surface } from "../picture";
import { Cat, type Profile, stepTitle, WARMUP } from "../profile";
import { trackText, valueAt, walkTrack } from "./timeline_counters";
import type { Flow } from "./timeline_flows";
import { fitting, fitText, FONT, over, type Paint, textWidth } from "./timeline_paint";
import { type Item, MINI, pixelTime, plotWidth, RULER, type Scene, spanBox, timeToX, TOP } from "./timeline_scene";

const WARMUP_ALPHA = 0.45;
const DIM = 0.22; // what the search did not find
const LABEL = 26; // pixels a box needs for a name

export function draw(g: Surface, v: Scene, paint: Paint): void {
  const { theme } = paint;
  g.font = FONT;
  g.textAlign = "left";
  g.globalAlpha = 1;
  g.fillStyle = theme.paper;
  g.rect(0, 0, v.width, v.height);
  const ticks = tickTimes(v);
  g.fillStyle = theme.line;
  for (const t of ticks.times) g.rect(Math.round(timeToX(v, t)), TOP, 1, v.height - TOP);
  for (const item of v.items) {
    const y = TOP + item.y - v.scroll;
    if (y > v.height || y + item.height < TOP) continue;
    if (item.kind === "lane") drawLane(g, v, paint, item, y);
    else drawTrack(g, v, paint, item, y);
  }
  drawSelected(g, v, paint);
  for (const flow of v.flows) drawFlow(g, v, paint, flow);
  if (v.area) drawArea(g, v, paint, v.area);
  drawGutter(g, v, paint);
  drawRuler(g, v, paint, ticks);
  drawMini(g, v, paint);
  drawScrollbar(g, v, paint);
}

// ---- lanes

function drawLane(g: Surface, v: Scene, paint: Paint, item: Item, y: number): void {
  const { rows } = v.lanes.threads[item.index];
  for (let k = 0; k < rows.length; k++) {
    const top = y + k * item.row;
    if (top + item.row < TOP || top > v.height) continue;
    drawRow(g, v, paint, rows[k], top, item.row, v.hits ? DIM : 1);
    const hits = v.hits?.[item.index]?.[k];
    if (hits?.length) drawRow(g, v, paint, hits, top, item.row, 1);
    const marked = v.marked?.[item.index]?.[k];
    if (marked?.length) underline(g, v, paint, marked, top, item.row);
  }
}

/** Boxes narrower than a pixel are shades of how much of the pixel they fill; equal neighbours are one rectangle. */
function drawRow(g: Surface, v: Scene, paint: Paint, row: Uint32Array, y: number, height: number, strength: number): void {
  const s = v.p.spans;
  const pixel = pixelTime(v);
  const right = v.width;
  let from = 0;
  let to = -1;
  let color = "";
  let alpha = 0;
  const flush = (): void => {
    if (to > from) box(g, from, y, to - from, height - 1, color, alpha);
    to = -1;
  };
  walk(s, row, v.t0, v.t1, pixel, (first, last, a, b) => {
    const x0 = Math.max(v.gutter, timeToX(v, a));
    const x1 = Math.min(right, timeToX(v, b));
    const i = row[first];
    if (first === last && x1 - x0 >= 2) {
      flush();
      const shade = (s.flags[i] & WARMUP ? WARMUP_ALPHA : 1) * strength;
      const fill = paint.span(i);
      box(g, x0, y, x1 - x0 - (x1 - x0 > 4 ? 1 : 0.5), height - 1, fill, shade);
      if (x1 - x0 >= LABEL && height >= 16) label(g, v, i, x0, x1, y, height, shade < 1 ? paint.theme.ink : inkOn(fill));
      return;
    }
    const middle = row[(first + last) >> 1];
    const end = row[last];
    const longest = s.duration[middle] > s.duration[i] ? middle : i;
    const filled = (((s.duration[i] + s.duration[middle] + s.duration[end]) / 3) * (last - first + 1)) / pixel;
    const shown = paint.span(s.duration[end] > s.duration[longest] ? end : longest);
    const shade = (0.4 + 0.15 * Math.round(4 * Math.min(1, filled))) * (s.flags[i] & WARMUP ? WARMUP_ALPHA : 1) * strength;
    const left = Math.floor(x0);
    if (to < left || shown !== color || shade !== alpha) {
      flush();
      from = left;
      color = shown;
      alpha = shade;
    }
    to = Math.max(left + 1, Math.ceil(x1));
  });
  flush();
  g.globalAlpha = 1;
}

function box(g: Surface, x: number, y: number, w: number, height: number, color: string, alpha: number): void {
  g.globalAlpha = alpha;
  g.fillStyle = color;
  g.rect(x, y, w, height);
}

function label(g: Surface, v: Scene, i: number, x0: number, x1: number, y: number, height: number, ink: string): void {
  const s = v.p.spans;
  const room = x1 - x0 - 8;
  const name = fitText(spanLabel(v.p, i), room);
  if (!name) return;
  g.globalAlpha = 1;
  g.fillStyle = ink;
  const time = f.time(s.duration[i]);
  const base = y + Math.min(Math.floor((height - 1) / 2) + 5, LINE_HEIGHT);
  if (textWidth(name) + textWidth(time) + 8 <= room) return g.text(`${name}  ${time}`, x0 + 4, base);
  g.text(name, x0 + 4, base);
  if (height >= base - y + LINE_HEIGHT + 4 && textWidth(time) <= room) g.text(time, x0 + 4, base + LINE_HEIGHT);
}
const LINE_HEIGHT = 16;
const UNNAMED = "(unnamed)";

/** A thread's share of an operator goes by that operator. */
function spanLabel(p: Profile, i: number): string {
  const { step, category, name } = p.spans;
  if (category[i] === Cat.Thread && step[i] >= 0) return stepTitle(p.steps[step[i]]);
  return p.strings[name[i]] || UNNAMED;
}

/** Spans of the selected steps have a line below them: seen without colour, too. */
function underline(g: Surface, v: Scene, paint: Paint, row: Uint32Array, y: number, height: number): void {
  g.globalAlpha = 1;
  g.fillStyle = paint.theme.ink;
  const thick = 2;
  walk(v.p.spans, row, v.t0, v.t1, pixelTime(v), (_first, _last, a, b) => {
    const x0 = Math.max(v.gutter, timeToX(v, a));
    g.rect(x0, y + height - 1 - thick, Math.max(1, Math.min(v.width, timeToX(v, b)) - x0), thick);
  });
}

function drawSelected(g: Surface, v: Scene, paint: Paint): void {
  for (const i of v.hover === v.selected ? [v.selected] : [v.hover, v.selected]) {
    const at = i >= 0 ? spanBox(v, i) : null;
    if (!at) continue;
    const s = v.p.spans;
    const x0 = Math.max(v.gutter - 4, timeToX(v, s.start[i]));
    const x1 = Math.min(v.width + 4, timeToX(v, s.start[i] + s.duration[i]));
    if (x1 < v.gutter || x0 > v.width) continue;
    g.strokeStyle = paint.theme.ink;
    g.lineWidth = i === v.selected ? 2 : 1;
    g.frame(x0, TOP + at.y - v.scroll, Math.max(2, x1 - x0), at.height);
  }
}

// ---- counters

function drawTrack(g: Surface, v: Scene, paint: Paint, item: Item, y: number): void {
  const track = v.tracks[item.index];
  const most = track.most > 0 ? track.most : 1;
  const base = y + item.height;
  g.globalAlpha = 1;
  g.fillStyle = over(paint.theme.accent, paint.theme.paper, 0.35);
  const edge: number[] = [];
  walkTrack(track, v.t0, v.t1, pixelTime(v), (a, b, value) => {
    const x0 = Math.round(timeToX(v, a)); // whole pixels, and at least one: no peak is lost
    const x1 = Math.max(x0 + 1, Math.round(timeToX(v, b)));
    const high = (Math.max(0, value) / most) * (item.height - 2);
    if (high > 0) g.rect(x0, base - high, x1 - x0, high);
    edge.push(x0, base - high, x1, base - high);
  });
  g.strokeStyle = paint.theme.accent;
  g.lineWidth = 1;
  if (edge.length) g.line(edge);
  g.fillStyle = paint.theme.line;
  g.rect(v.gutter, base, plotWidth(v), 1);
}

// ---- arrows

const CURVE = 14; // pieces of a curve

function drawFlow(g: Surface, v: Scene, paint: Paint, flow: Flow): void {
  const s = v.p.spans;
  const a = spanBox(v, flow.from);
  const b = spanBox(v, flow.to);
  if (!a || !b) return;
  const begin = s.start[flow.to];
  const from = flow.kind === "consumer" ? s.start[flow.from] + s.duration[flow.from] : Math.max(s.start[flow.from], begin);
  let x0 = timeToX(v, from);
  let x1 = timeToX(v, begin);
  if ((x0 < v.gutter && x1 < v.gutter) || (x0 > v.width && x1 > v.width)) return;
  const down = b.y >= a.y;
  const y0 = TOP - v.scroll + (flow.kind === "consumer" ? a.y + a.height / 2 : a.y + (down ? a.height : 0));
  const y1 = TOP - v.scroll + (flow.kind === "consumer" ? b.y + b.height / 2 : b.y + (down ? 0 : b.height));
  // Consumers of the same row: a bow below it, so that the arrow does not lie on the boxes.
  const bow = flow.kind === "consumer" && Math.abs(y1 - y0) < 2 ? 16 : 0;
  if (bow && x1 - x0 < 24) {
    // Neighbours: from inside of one box into the other, or the arrow would have no length.
    const half = (i: number): number => Math.min(14, (timeToX(v, s.start[i] + s.duration[i]) - timeToX(v, s.start[i])) / 2);
    x0 -= half(flow.from);
    x1 += half(flow.to);
    if (x1 - x0 < 8) return;
  }
  const pull = flow.kind === "consumer" ? Math.min(60, Math.max(0, x1 - x0) / 2) : 0;
  const points: number[] = [];
  for (let k = 0; k <= CURVE; k++) {
    const t = k / CURVE;
    const u = 1 - t;
    points.push(
      u * u * u * x0 + 3 * u * u * t * (x0 + pull) + 3 * u * t * t * (x1 - pull) + t * t * t * x1,
      u * u * u * y0 + 3 * u * u * t * (y0 + bow) + 3 * u * t * t * (y1 + bow) + t * t * t * y1,
    );
  }
  g.globalAlpha = 1;
  g.strokeStyle = paint.theme.paper; // a light edge keeps the line readable over boxes
  g.lineWidth = 3;
  g.line(points);
  g.strokeStyle = flow.kind === "consumer" ? paint.theme.bad : paint.theme.ink;
  g.lineWidth = 1.25;
  g.line(points);
  const n = points.length;
  const angle = Math.atan2(points[n - 1] - points[n - 5], points[n - 2] - points[n - 6]);
  const tip = (turn: number): [number, number] => [x1 - 7 * Math.cos(angle + turn), y1 - 7 * Math.sin(angle + turn)];
  g.line([...tip(0.45), x1, y1, ...tip(-0.45)]);
}

function drawArea(g: Surface, v: Scene, paint: Paint, [a, b]: [number, number]): void {
  const x0 = Math.max(v.gutter, timeToX(v, a));
  const x1 = Math.min(v.width, timeToX(v, b));
  if (x1 <= x0) return;
  box(g, x0, MINI, x1 - x0, v.height - MINI, paint.theme.accent, 0.12);
  g.globalAlpha = 1;
  g.rect(x0, MINI, 1, v.height - MINI);
  g.rect(x1 - 1, MINI, 1, v.height - MINI);
}

// ---- left

function drawGutter(g: Surface, v: Scene, paint: Paint): void {
  const { theme } = paint;
  g.globalAlpha = 1;
  g.fillStyle = theme.panel;
  g.rect(0, 0, v.gutter, v.height);
  g.fillStyle = theme.line;
  g.rect(v.gutter - 1, 0, 1, v.height);
  for (const item of v.items) {
    const y = TOP + item.y - v.scroll;
    if (y > v.height || y + item.height < TOP) continue;
    g.fillStyle = theme.ink;
    g.text(`${item.collapsed ? "▸" : "▾"} ${fitText(item.title, v.gutter - 28)}`, 6, y + 13);
    if (item.height < 2 * ROW_TEXT) continue;
    g.fillStyle = theme.faint;
    g.text(fitting(v.gutter - 28, ...secondLine(v, item)), 22, y + 13 + ROW_TEXT);
  }
}
const ROW_TEXT = 16;

function secondLine(v: Scene, item: Item): string[] {
  if (item.kind === "lane") {
    let n = 0;
    for (const row of v.lanes.threads[item.index].rows) n += row.length;
    return [`${f.count(n)} spans`, f.count(n)];
  }
  const track = v.tracks[item.index];
  return [`to ${trackText(track, track.most)}`, trackText(track, track.most)];
}

// ---- top

interface Ticks {
  times: number[];
  step: number; // between two of them
  anchor: number; // times are told from here on, so that three digits are enough
}
function tickTimes(v: Scene): Ticks {
  const step = niceStep((v.t1 - v.t0) * Math.min(1, 92 / plotWidth(v)));
  const times: number[] = [];
  const first = Math.ceil(v.t0 / step);
  for (let k = first; k * step <= v.t1 && times.length < 200; k++) times.push(k * step);
  const digit = 10 ** Math.floor(Math.log10(step)); // the last one that a step of 1, 2 or 5 changes
  const anchor = v.t1 / digit > 999 ? Math.floor(v.t0 / (100 * step)) * 100 * step : 0;
  return { times, step, anchor };
}

function drawRuler(g: Surface, v: Scene, paint: Paint, { times, step, anchor }: Ticks): void {
  const { theme } = paint;
  g.globalAlpha = 1;
  g.fillStyle = theme.paper;
  g.rect(v.gutter, MINI, plotWidth(v), RULER);
  if (v.area) drawArea(g, { ...v, height: TOP }, paint, v.area);
  g.fillStyle = theme.line;
  g.rect(0, TOP - 1, v.width, 1);
  for (const t of times) {
    const x = Math.round(timeToX(v, t));
    g.fillStyle = theme.line;
    g.rect(x, MINI + 4, 1, RULER - 4);
    g.fillStyle = theme.faint;
    const text = anchor ? `+${f.time(t - anchor)}` : f.mark(t, step);
    if (x + 4 + textWidth(text) < v.width) g.text(text, x + 4, MINI + 16);
  }
  g.fillStyle = theme.panel;
  g.rect(0, MINI, v.gutter - 1, RULER - 1);
  g.fillStyle = theme.faint;
  const length = f.time(v.t1 - v.t0);
  const base = anchor ? [`${f.mark(anchor, step)} +`] : [`${length} shown`, length];
  g.text(fitting(v.gutter - 12, ...base), 6, MINI + 16);
}

function drawMini(g: Surface, v: Scene, paint: Paint): void {
  const { theme } = paint;
  const width = plotWidth(v);
  g.globalAlpha = 1;
  g.fillStyle = theme.panel;
  g.rect(0, 0, v.width, MINI);
  g.fillStyle = theme.faint;
  g.text(fitting(v.gutter - 12, `all: ${f.time(v.p.end)}`, f.time(v.p.end)), 6, 22);
  const n = v.density.length;
  g.fillStyle = theme.accent;
  g.globalAlpha = 0.55;
  const parts = Math.min(n, Math.floor(width));
  for (let k = 0; k < parts; k++) {
    let most = 0;
    for (let j = Math.floor((k * n) / parts); j < ((k + 1) * n) / parts; j++) most = Math.max(most, v.density[j]);
    const high = most * (MINI - 8);
    if (high > 0) g.rect(v.gutter + (k * width) / parts, MINI - 4 - high, width / parts, high);
  }
  const end = v.p.end || 1;
  const x0 = v.gutter + (v.t0 / end) * width;
  const x1 = Math.min(v.width, Math.max(x0 + 3, v.gutter + (v.t1 / end) * width));
  g.fillStyle = theme.paper;
  g.globalAlpha = 0.6; // what is not in sight is paler
  g.rect(v.gutter, 0, Math.max(0, x0 - v.gutter), MINI);
  g.rect(x1, 0, Math.max(0, v.width - x1), MINI);
  g.globalAlpha = 1;
  g.strokeStyle = theme.accent;
  g.lineWidth = 1.5;
  g.frame(x0, 1, x1 - x0, MINI - 2);
  g.fillStyle = theme.line;
  g.rect(0, MINI - 1, v.width, 1);
}

function drawScrollbar(g: Surface, v: Scene, paint: Paint): void {
  const last = v.items[v.items.length - 1];
  const all = last ? last.y + last.height : 0;
  const room = v.height - TOP;
  if (all <= room || room <= 0) return;
  box(g, v.width - 6, TOP + (v.scroll / all) * room, 4, Math.max(20, (room / all) * room), paint.theme.faint, 0.7);
  g.globalAlpha = 1;
}

/** What is at a point of a track, for the tooltip. */
export function trackLines(v: Scene, item: Item, t: number): string[] {
  const track = v.tracks[item.index];
  return [f.shorten(item.title, 80), trackText(track, valueAt(track, t)), `at ${f.time(t)}; highest ${trackText(track, track.most)}`];
}
