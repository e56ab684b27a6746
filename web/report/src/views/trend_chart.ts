// SPDX-License-Identifier: Apache-2.0
// One trend: a point for each entry with its interval, lines for the levels, a mark where one ends. Entries stand side
// by side in their order, since commits do not come at even times. Far outliers would press the rest into a line, so they
// are drawn as arrows at the edge.
import uPlot from "uplot";
import { theme, type Theme } from "../colors";
import { h, perFrame, tooltip } from "../dom";
import * as f from "../format";
import type { Surface } from "../picture";
import type { Trend } from "../profile";
import { TEXT } from "./graph_draw";
import { changeColor, changeMark, dateOf, hasInterval, isShown, linesOf } from "./trend_words";

const HEIGHT = 300;
const FENCE = 4; // distances between the quartiles beyond which a value is far from all others
const NEAR = 24; // px around a point that choose it
const CROWDED = 4000; // points in sight beyond which only values are drawn

export interface Chosen {
  /** Positions of the entries that are chosen, at most two. */
  picked(): readonly number[];
  pick(position: number): void;
  clear(): void;
  /** The entry under the pointer or the cursor; null: none. */
  read(position: number | null): void;
}

/** What the axis of times shows. */
export function rangeOf(t: Trend): [low: number, high: number] {
  const sorted = Float64Array.from(t.points.map((p) => p.value_ms).filter(isShown)).sort();
  if (!sorted.length) return [0, 1];
  const at = (q: number): number => sorted[Math.floor(q * (sorted.length - 1))];
  const spread = at(0.75) - at(0.25) || at(0.5) * 0.02;
  let low = Math.max(sorted[0], at(0.25) - FENCE * spread);
  let high = Math.min(sorted[sorted.length - 1], at(0.75) + FENCE * spread);
  for (const level of t.levels) {
    if (!isShown(level.value_ms)) continue;
    low = Math.min(low, level.value_ms - spread / 2);
    high = Math.max(high, level.value_ms + spread / 2);
  }
  const room = 0.08 * (high - low) || high * 0.05 || 1;
  return [Math.max(0, low - room), high + 2 * room]; // marks of changes stand above
}

export class TrendChart {
  readonly element: HTMLElement;
  private readonly trend: Trend;
  private readonly chosen: Chosen;
  private readonly xs: Float64Array;
  private readonly ys: (number | null)[];
  private readonly range: [number, number];
  private plot: uPlot | null = null;
  private cursor = -1;

  constructor(trend: Trend, chosen: Chosen) {
    this.trend = trend;
    this.chosen = chosen;
    this.xs = Float64Array.from(trend.points, (_, i) => i);
    this.ys = trend.points.map((p) => (isShown(p.value_ms) ? p.value_ms : null));
    this.range = rangeOf(trend);
    this.element = h("div", {
      class: "trend-chart",
      role: "application",
      tabindex: 0,
      "aria-label": "Trend. Left and Right move along the entries, Page Up and Page Down along the changes, Enter chooses an entry, W and S zoom, A and D move, 0 shows all.",
      onkeydown: (e: KeyboardEvent) => this.key(e),
      onblur: () => tooltip(null),
      onpointerleave: () => this.leave(),
    });
  }

  show(): void {
    const width = this.element.clientWidth;
    if (!width) return;
    const before = this.plot?.scales["x"];
    this.plot?.destroy();
    const colors = theme();
    const axis: uPlot.Axis = { stroke: colors.faint, grid: { stroke: colors.line, width: 1 }, ticks: { stroke: colors.line, width: 1 }, font: TEXT };
    const last = Math.max(1, this.xs.length - 1);
    this.plot = new uPlot(
      {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, x: true, points: { show: false }, drag: { x: true, y: false } },
        scales: { x: { time: false, range: (_, min, max) => [min, max > min ? max : min + 1] }, y: { range: () => this.range } },
        axes: [
          { ...axis, values: (_, splits) => splits.map((v) => this.name(v)), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6], space: 96 },
          { ...axis, values: (_, splits) => splits.map((v) => f.mark(v * 1e6, (splits[1] - splits[0]) * 1e6)), size: 76 },
        ],
        series: [{}, { stroke: colors.accent, points: { show: false }, paths: () => null }],
        hooks: {
          drawClear: [(u) => this.levels(u, colors)],
          draw: [(u) => this.points(u, colors)],
          setCursor: [(u) => this.hover(u)],
          ready: [(u) => this.listen(u)],
        },
      },
      [this.xs, this.ys] as uPlot.AlignedData,
      this.element,
    );
    const keep = typeof before?.min === "number" && typeof before.max === "number" ? { min: before.min, max: before.max } : { min: -0.5, max: last + 0.5 };
    this.plot.setScale("x", keep);
  }

  redraw(): void {
    this.plot?.redraw(false);
  }

  /** Makes an entry the current one and brings it into sight. */
  goTo(position: number): void {
    const u = this.plot;
    const last = this.xs.length - 1;
    if (!u || last < 0) return;
    this.cursor = Math.max(0, Math.min(last, position));
    const { min, max } = u.scales["x"];
    if (typeof min === "number" && typeof max === "number" && (this.cursor < min || this.cursor > max)) {
      const half = (max - min) / 2;
      u.setScale("x", { min: this.cursor - half, max: this.cursor + half });
    }
    this.chosen.read(this.cursor);
    this.tell();
    this.redraw();
  }

  // ---- drawing
  /** The date, or the time where all entries are of one day; without dates the number of the entry. */
  private name(v: number): string {
    const { points } = this.trend;
    const p = Number.isInteger(v) ? points[v] : undefined;
    if (!p) return "";
    const day = dateOf(p);
    if (!day) return `#${p.id}`;
    return points.length > 1 && dateOf(points[0]) === dateOf(points[points.length - 1]) ? dateOf(p, true).slice(-9) : day;
  }
  private edge(u: uPlot): { left: number; right: number; top: number; bottom: number } {
    const { left, top, width, height } = u.bbox;
    return { left, right: left + width, top, bottom: top + height };
  }
  private clipped(u: uPlot, draw: (c: CanvasRenderingContext2D, ratio: number) => void): void {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    draw(u.ctx, window.devicePixelRatio || 1);
    u.ctx.restore();
  }

  private levels(u: uPlot, colors: Theme): void {
    this.clipped(u, (c, ratio) => {
      c.strokeStyle = colors.ink;
      c.lineWidth = 2 * ratio;
      for (const { from, to, value_ms } of this.trend.levels) {
        if (!isShown(value_ms)) continue;
        const y = u.valToPos(value_ms, "y", true);
        c.beginPath();
        c.moveTo(u.valToPos(from - 0.5, "x", true), y);
        c.lineTo(u.valToPos(to - 0.5, "x", true), y);
        c.stroke();
      }
    });
  }

  private points(u: uPlot, colors: Theme): void {
    const { min, max } = u.scales["x"];
    if (typeof min !== "number" || typeof max !== "number") return;
    const a = Math.max(0, Math.floor(min));
    const b = Math.min(this.xs.length, Math.ceil(max) + 1);
    this.clipped(u, (c, ratio) => {
      const box = this.edge(u);
      const crowded = b - a > CROWDED;
      const wide = Math.max(1.6, Math.min(4, (u.bbox.width / ratio / Math.max(1, b - a)) * 0.35)) * ratio;
      for (let i = a; i < b; i++) this.point(u, c, i, crowded ? ratio : wide, crowded, box, colors, ratio);
      for (let i = a; i < b; i++) if (this.trend.points[i].change) this.change(u, c, i, box, colors, ratio);
      for (const i of this.chosen.picked()) this.ring(u, c, i, wide + 4 * ratio, colors.ink, 2.5 * ratio, box);
      if (this.cursor >= a && this.cursor < b) this.ring(u, c, this.cursor, wide + 3 * ratio, colors.accent, 1.5 * ratio, box);
    });
  }

  private point(u: uPlot, c: CanvasRenderingContext2D, i: number, r: number, crowded: boolean, box: { top: number; bottom: number }, colors: Theme, ratio: number): void {
    const p = this.trend.points[i];
    if (!isShown(p.value_ms)) return;
    const x = u.valToPos(i, "x", true);
    const y = u.valToPos(p.value_ms, "y", true);
    if (!crowded && hasInterval(p)) {
      c.strokeStyle = colors.accent;
      c.globalAlpha = 0.45;
      c.lineWidth = Math.max(ratio, r / 2);
      c.beginPath();
      c.moveTo(x, u.valToPos(p.low_ms as number, "y", true));
      c.lineTo(x, u.valToPos(p.high_ms as number, "y", true));
      c.stroke();
      c.globalAlpha = 1;
    }
    c.fillStyle = colors.accent;
    c.beginPath();
    if (y < box.top || y > box.bottom) {
      const [tip, base] = y < box.top ? [box.top + ratio, box.top + 9 * ratio] : [box.bottom - ratio, box.bottom - 9 * ratio];
      c.moveTo(x, tip);
      c.lineTo(x - 4 * ratio, base);
      c.lineTo(x + 4 * ratio, base);
    } else c.arc(x, y, r, 0, 2 * Math.PI);
    c.fill();
  }

  private ring(u: uPlot, c: CanvasRenderingContext2D, i: number, r: number, color: string, width: number, box: { top: number; bottom: number }): void {
    const value = this.ys[i];
    if (value === null || value === undefined) return;
    c.strokeStyle = color;
    c.lineWidth = width;
    c.beginPath();
    c.arc(u.valToPos(i, "x", true), Math.max(box.top + r, Math.min(box.bottom - r, u.valToPos(value, "y", true))), r, 0, 2 * Math.PI);
    c.stroke();
  }

  private change(u: uPlot, c: CanvasRenderingContext2D, i: number, box: { left: number; right: number; top: number; bottom: number }, colors: Theme, ratio: number): void {
    const { ratio: by } = this.trend.points[i];
    const color = colors[changeColor(by)];
    const x = u.valToPos(i - 0.5, "x", true);
    const text = changeMark(by);
    c.strokeStyle = color;
    c.lineWidth = 1.5 * ratio;
    c.setLineDash([5 * ratio, 4 * ratio]);
    c.beginPath();
    c.moveTo(x, box.top);
    c.lineTo(x, box.bottom);
    c.stroke();
    c.setLineDash([]);
    c.font = `600 ${12 * ratio}px ${TEXT.replace(/^\S+ /, "")}`;
    const wide = c.measureText(text).width;
    const left = x + 4 * ratio + wide > box.right ? x - 4 * ratio - wide : x + 4 * ratio;
    c.fillStyle = colors.paper;
    c.globalAlpha = 0.8;
    c.fillRect(left - 2 * ratio, box.top, wide + 4 * ratio, 17 * ratio);
    c.globalAlpha = 1;
    c.fillStyle = color;
    c.textAlign = "left";
    c.textBaseline = "alphabetic";
    c.fillText(text, left, box.top + 13 * ratio);
  }

  // ---- pointer and keys
  private listen(u: uPlot): void {
    let from = 0;
    u.over.addEventListener("pointerdown", (e) => (from = e.clientX));
    u.over.addEventListener("click", (e) => {
      if (Math.abs(e.clientX - from) > 4) return; // the end of a drag
      const i = this.nearest(u);
      if (i >= 0) this.chosen.pick(i);
    });
    u.over.addEventListener("dblclick", () => u.setScale("x", { min: -0.5, max: Math.max(1, this.xs.length - 1) + 0.5 }));
  }
  /** The entry under the pointer; -1: none is near. */
  private nearest(u: uPlot): number {
    const { left, top } = u.cursor;
    if (left === undefined || top === undefined || left < 0) return -1;
    const from = Math.max(0, Math.floor(u.posToVal(left - NEAR, "x")));
    const to = Math.min(this.xs.length - 1, Math.ceil(u.posToVal(left + NEAR, "x")));
    let best = -1;
    let least = Infinity;
    for (let i = from; i <= to; i++) {
      const value = this.ys[i];
      if (value === null) continue;
      const y = Math.max(0, Math.min(u.over.clientHeight, u.valToPos(value, "y")));
      const away = Math.hypot(u.valToPos(i, "x") - left, (y - top) / 3); // mostly which one it is above
      if (away < least) [least, best] = [away, i];
    }
    return least <= 2 * NEAR ? best : -1;
  }
  private hover(u: uPlot): void {
    if (u.cursor.left === undefined || u.cursor.left < 0) return;
    const i = this.nearest(u);
    if (i < 0 || i === this.cursor) return;
    this.cursor = i;
    this.chosen.read(i);
    this.tell();
    this.later();
  }
  private readonly later = perFrame(() => this.redraw());
  private tell(): void {
    const u = this.plot;
    if (!u || this.cursor < 0) return;
    const box = u.over.getBoundingClientRect();
    const value = this.ys[this.cursor] ?? this.range[0];
    const y = Math.max(0, Math.min(box.height, u.valToPos(value, "y")));
    tooltip({ clientX: box.left + u.valToPos(this.cursor, "x"), clientY: box.top + y }, linesOf(this.trend.points[this.cursor]));
  }
  private leave(): void {
    if (document.activeElement !== this.element) tooltip(null);
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey || !this.xs.length) return;
    const last = this.xs.length - 1;
    const at = this.cursor < 0 ? last : this.cursor;
    const changes = this.trend.points.flatMap((p, i) => (p.change ? [i] : []));
    const moves: Record<string, () => number | undefined> = {
      ArrowLeft: () => (this.cursor < 0 ? last : at - 1),
      ArrowRight: () => (this.cursor < 0 ? 0 : at + 1),
      Home: () => 0,
      End: () => last,
      PageUp: () => changes.filter((i) => i < at).pop(),
      PageDown: () => changes.find((i) => i > at),
    };
    const key = e.key.toLowerCase();
    if (e.key in moves) {
      const to = moves[e.key]();
      if (to !== undefined) this.goTo(to);
    } else if (e.key === "Enter" || e.key === " ") {
      if (this.cursor >= 0) this.chosen.pick(this.cursor);
    } else if (e.key === "Escape") {
      this.chosen.clear();
      tooltip(null);
    } else if (!this.zoom(key)) return;
    e.preventDefault();
    e.stopPropagation();
  }
  private zoom(key: string): boolean {
    const x = this.plot?.scales["x"];
    const factor: Record<string, number> = { w: 0.8, "+": 0.8, "=": 0.8, s: 1.25, "-": 1.25, a: 1, d: 1, "0": Infinity };
    if (!(key in factor) || typeof x?.min !== "number" || typeof x.max !== "number") return false;
    const end = Math.max(1, this.xs.length - 1) + 0.5;
    const size = Math.min(end + 0.5, Math.max(2, (x.max - x.min) * factor[key]));
    const shift = key === "a" ? -size / 5 : key === "d" ? size / 5 : 0;
    const middle = key === "w" && this.cursor >= 0 ? this.cursor : (x.min + x.max) / 2;
    const min = Math.max(-0.5, Math.min(end - size, middle - size / 2 + shift));
    tooltip(null);
    this.plot?.setScale("x", { min, max: min + size });
    return true;
  }

  /** All of it as a picture of its own. */
  drawing(): { width: number; height: number; draw: (s: Surface) => void } {
    const [width, height] = [900, 340];
    return { width, height, draw: (s) => this.paint(s, 84, 30, 800, 260) };
  }
  private paint(s: Surface, left: number, top: number, width: number, height: number): void {
    const colors = theme();
    const { points, levels } = this.trend;
    const [low, high] = this.range;
    const x = (i: number): number => left + ((i + 0.5) / Math.max(1, points.length)) * width;
    const y = (v: number): number => top + height - Math.max(0, Math.min(1, (v - low) / (high - low))) * height;
    s.font = TEXT;
    s.fillStyle = colors.faint;
    s.strokeStyle = colors.line;
    for (let k = 0; k <= 4; k++) {
      const v = low + ((high - low) * k) / 4;
      const i = Math.round(((points.length - 1) * k) / 4);
      s.textAlign = "right";
      s.line([left, y(v), left + width, y(v)]);
      s.text(f.mark(v * 1e6, ((high - low) / 4) * 1e6), left - 8, y(v) + 4);
      s.textAlign = k === 4 ? "right" : k ? "center" : "left";
      if (points.length > k) s.text(this.name(i), x(i), top + height + 18);
    }
    s.fillStyle = colors.accent;
    s.strokeStyle = colors.accent;
    points.forEach((p, i) => {
      if (!isShown(p.value_ms)) return;
      s.globalAlpha = 0.45;
      if (hasInterval(p)) s.line([x(i), y(p.low_ms as number), x(i), y(p.high_ms as number)]);
      s.globalAlpha = 1;
      s.rect(x(i) - 2, y(p.value_ms) - 2, 4, 4);
    });
    s.lineWidth = 2;
    s.strokeStyle = colors.ink;
    for (const level of levels) if (isShown(level.value_ms)) s.line([x(level.from - 0.5), y(level.value_ms), x(level.to - 0.5), y(level.value_ms)]);
    s.lineWidth = 1.5;
    s.textAlign = "center";
    points.forEach((p, i) => {
      if (!p.change) return;
      s.strokeStyle = s.fillStyle = colors[changeColor(p.ratio)];
      s.line([x(i - 0.5), top, x(i - 0.5), top + height]);
      s.text(changeMark(p.ratio), x(i - 0.5), top - 8);
    });
  }

  close(): void {
    tooltip(null);
    this.plot?.destroy();
    this.plot = null;
  }
}
