// SPDX-License-Identifier: Apache-2.0
// One run of each profile, the one nearest to the median, as two lanes of operators that begin at 0 on one axis.
import { brief, ticks } from "../chart";
import { inkOn, onTheme, opColor, type Theme, theme } from "../colors";
import { button, h, perFrame, sharp, tooltip } from "../dom";
import * as f from "../format";
import { CanvasSurface, pictureButtons, type Surface, SvgSurface } from "../picture";
import { Cat, type Profile, spanName, stepNode, stepTitle } from "../profile";
import type { Page } from "../state";
import { medianRun, type Run, stepKey } from "./compare_runs";

const LANE = 64; // px
const GAP = 30; // above each lane, for its title
const AXIS = 24;
const HEIGHT = 2 * (LANE + GAP) + AXIS;
const FONT = "12px system-ui, sans-serif";

export class Lanes {
  readonly element: HTMLElement;
  readonly buttons: HTMLElement;
  readonly caption: string;
  readonly draw: () => void;
  private readonly page: Page;
  private readonly runs: (Run | null)[];
  private readonly canvas: HTMLCanvasElement;
  private readonly unwatch: () => void;
  private readonly most: number; // ns: where the longer run ends
  private from = 0;
  private to: number;
  private width = 0;

  constructor(page: Page) {
    this.page = page;
    this.runs = page.data.profiles.map(medianRun);
    this.most = Math.max(1, ...this.runs.map((run) => run?.length ?? 0));
    this.to = this.most;
    const [a, b] = (page.params.get("t") ?? "").split("-").map(Number);
    if (b > a && a >= 0 && b <= this.most * 1.001) [this.from, this.to] = [a, b];
    this.draw = perFrame(() => this.paint());
    const lengths = this.runs.map((run, i) => `${i ? "after" : "before"} ${run ? f.time(run.length) : "no run"}`).join(", ");
    this.caption = this.runs.some((run) => run?.boxes.length)
      ? "The run nearest to the median of each profile. Choose a box to see what it is."
      : "Neither profile holds the operators of a run.";
    this.canvas = h("canvas", {
      role: "img",
      tabindex: 0,
      "aria-label": `The median runs on one axis of time: ${lengths}. Left and right choose operators of the profile shown.`,
      onpointermove: (e: PointerEvent) => this.hover(e),
      onpointerleave: () => tooltip(null),
      onclick: (e: PointerEvent) => this.click(e),
      onwheel: (e: WheelEvent) => this.wheel(e),
      onkeydown: (e: KeyboardEvent) => this.arrows(e),
    });
    this.element = h("div", { class: "lanes" }, this.canvas);
    this.buttons = h(
      "span",
      { class: "buttons" },
      button("+", () => this.zoom(0.5), { "aria-label": "Zoom in", title: "Zoom in (W)" }),
      button("−", () => this.zoom(2), { "aria-label": "Zoom out", title: "Zoom out (S)" }),
      button("All", () => this.window(0, this.most), { title: "Show the whole runs" }),
      pictureButtons("runs", () => this.canvas, () => this.svg()),
    );
    this.unwatch = onTheme(this.draw);
  }
  close(): void {
    this.unwatch();
    tooltip(null);
  }
  resized(): void {
    this.width = Math.max(200, this.element.clientWidth);
    this.draw();
  }

  // ---- the window of time
  private window(from: number, to: number): void {
    const wide = Math.min(this.most, Math.max(to - from, 100));
    this.from = Math.min(Math.max(0, from), this.most - wide);
    this.to = this.from + wide;
    const whole = wide >= this.most;
    this.page.set("t", whole ? null : `${Math.round(this.from)}-${Math.round(this.to)}`);
    this.draw();
  }
  private zoom(by: number, at = (this.from + this.to) / 2): void {
    this.window(at - (at - this.from) * by, at + (this.to - at) * by);
  }
  private move(part: number): void {
    const by = (this.to - this.from) * part;
    this.window(this.from + by, this.to + by);
  }
  key(e: KeyboardEvent): boolean {
    const key = e.key.toLowerCase();
    if (key === "w") this.zoom(0.7);
    else if (key === "s") this.zoom(1 / 0.7);
    else if (key === "a") this.move(-0.2);
    else if (key === "d") this.move(0.2);
    else if (key === "0") this.zoom(Infinity);
    else return false;
    return true;
  }
  private wheel(e: WheelEvent): void {
    if (!e.ctrlKey && !e.metaKey) return; // the page scrolls
    e.preventDefault();
    this.zoom(Math.exp(e.deltaY * 0.004), this.timeAt(e.offsetX));
  }
  private timeAt(x: number): number {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  // ---- choosing
  private boxAt(e: PointerEvent): { lane: number; span: number } | null {
    const lane = Math.floor(e.offsetY / (LANE + GAP));
    const run = this.runs[lane];
    if (!run || e.offsetY - lane * (LANE + GAP) < GAP) return null;
    const span = run.at(this.timeAt(e.offsetX), (1.5 / this.width) * (this.to - this.from));
    return span < 0 ? null : { lane, span };
  }
  private hover(e: PointerEvent): void {
    const found = this.boxAt(e);
    this.canvas.style.cursor = found ? "pointer" : "";
    if (!found) return tooltip(null);
    const p = this.page.data.profiles[found.lane];
    const step = p.steps[p.spans.step[found.span]];
    tooltip(e, [brief(step ? stepTitle(step) : spanName(p, found.span), 80), step ? brief(stepNode(step), 120) : "", f.time(p.spans.duration[found.span])].filter(Boolean));
  }
  private click(e: PointerEvent): void {
    const found = this.boxAt(e);
    if (found) this.choose(found.lane, found.span);
    else this.page.clear();
  }
  /** The step of the profile that is shown; if only the other one has it, that one is shown. */
  private choose(lane: number, span: number): void {
    const { page } = this;
    const step = page.data.profiles[lane].spans.step[span];
    if (step < 0) return;
    if (lane === page.shown) return page.selectStep(step);
    const key = stepKey(page.data.profiles[lane].steps[step]);
    const same = page.profile.steps.findIndex((other) => stepKey(other) === key);
    if (same >= 0) return page.selectStep(same);
    page.show(lane);
    page.selectStep(step);
  }
  private arrows(e: KeyboardEvent): void {
    const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    const run = this.runs[this.page.shown];
    if (!by || !run?.boxes.length) return;
    e.preventDefault();
    e.stopPropagation();
    const { spans } = this.page.profile;
    const { steps } = this.page.selection;
    const now = run.boxes.findIndex((i) => steps.has(spans.step[i]));
    const next = run.boxes[now < 0 ? 0 : Math.min(run.boxes.length - 1, Math.max(0, now + by))];
    const at = spans.start[next] - run.start;
    if (at < this.from || at > this.to) this.window(at - (this.to - this.from) / 2, at + (this.to - this.from) / 2);
    this.choose(this.page.shown, next);
  }

  // ---- drawing
  private paint(): void {
    if (!this.width) return;
    const t = theme();
    const c = sharp(this.canvas, this.width, HEIGHT);
    const surface = new CanvasSurface(c);
    surface.fillStyle = this.ground();
    surface.rect(0, 0, this.width, HEIGHT);
    this.drawOn(surface, t);
  }
  /** The colour of the card around it. */
  private ground(): string {
    return getComputedStyle(this.element.closest(".card") ?? document.body).backgroundColor;
  }
  private svg(): string {
    const t = theme();
    const surface = new SvgSurface(this.width, HEIGHT);
    this.drawOn(surface, t);
    return surface.done(this.ground());
  }
  private drawOn(c: Surface, t: Theme): void {
    const scale = this.width / (this.to - this.from);
    c.font = FONT;
    c.lineWidth = 1;
    const marks = ticks(this.from, this.to, this.width / 110);
    for (const v of marks) {
      const x = (v - this.from) * scale;
      c.strokeStyle = t.line;
      c.line([x, 0, x, HEIGHT - AXIS]);
      c.fillStyle = t.faint;
      c.textAlign = x < 30 ? "left" : x > this.width - 30 ? "right" : "center";
      c.text(f.mark(v, marks[1] - marks[0]), x, HEIGHT - 8);
    }
    c.textAlign = "left";
    const keys = this.selectedKeys();
    this.runs.forEach((run, lane) => {
      const top = lane * (LANE + GAP) + GAP;
      const p = this.page.data.profiles[lane];
      c.fillStyle = t.ink;
      c.text(`${lane ? "after" : "before"}  ${run ? f.time(run.length) : "no measured run"}`, 0, top - 8);
      if (run) this.drawRun(c, t, p, run, top, scale, keys);
    });
  }
  private selectedKeys(): Set<string> {
    const keys = new Set<string>();
    for (const step of this.page.selection.steps) keys.add(stepKey(this.page.profile.steps[step]));
    return keys;
  }
  private drawRun(c: Surface, t: Theme, p: Profile, run: Run, top: number, scale: number, keys: Set<string>): void {
    const { start, duration, step, parent, category } = p.spans;
    const end = Math.min(this.width, (run.length - this.from) * scale);
    c.fillStyle = t.grey;
    c.globalAlpha = 0.35; // what is no operator's
    if (end > 0) c.rect(0, top, end, LANE);
    c.globalAlpha = 1;
    const drawn = [-1, -1, -1]; // per level: the last pixel with a box, for thousands may fall on one
    const framed: number[] = [];
    for (const i of run.boxes) {
      const x = (start[i] - run.start - this.from) * scale;
      const w = duration[i] * scale;
      if (x > this.width || x + w < 0) continue;
      const level = Math.min(2, parent[i] >= 0 && category[parent[i]] === Cat.Operator ? 1 : 0);
      const chosen = keys.size > 0 && step[i] >= 0 && keys.has(stepKey(p.steps[step[i]]));
      if (x + w < drawn[level] + 0.7 && !chosen) continue;
      drawn[level] = x + w;
      this.drawBox(c, p, i, x, w, top + 6 * level, LANE - 12 * level, t);
      if (chosen) framed.push(x, w, top + 6 * level, LANE - 12 * level);
    }
    c.strokeStyle = t.ink;
    c.lineWidth = 2;
    for (let k = 0; k < framed.length; k += 4) c.frame(framed[k], framed[k + 2], Math.max(2, framed[k + 1]), framed[k + 3]);
    c.lineWidth = 1;
  }
  private drawBox(c: Surface, p: Profile, i: number, x: number, w: number, y: number, height: number, t: Theme): void {
    const s = p.steps[p.spans.step[i]];
    // Colours of the profile that is shown, so that a type has one colour in both lanes.
    const color = opColor(this.page.profile, s ? s.op : spanName(p, i), t.dark);
    const left = Math.max(x, 0);
    const seen = Math.min(x + w, this.width) - left;
    c.fillStyle = color;
    c.rect(left, y, Math.max(0.5, seen - (seen > 3 ? 1 : 0)), height);
    // The whole title, else the operator alone, else nothing.
    const room = (seen - 8) / 7;
    const text = [s ? stepTitle(s) : spanName(p, i), s ? s.op : ""].find((name) => name.length <= room);
    if (!text) return;
    c.fillStyle = inkOn(color);
    c.text(f.plain(text), left + 4, y + height / 2 + 4);
  }
}
