// SPDX-License-Identifier: Apache-2.0
// Below the graph: how long the selected steps took each time they ran, from the first run to the last.
import { theme } from "../colors";
import { append, button, clear, h, sharp } from "../dom";
import * as f from "../format";
import { Cat, isWarmup, type Profile } from "../profile";
import type { Page } from "../state";
import { bodiesOf, tableLabel, type TableInfo } from "./graph_tables";

const HEIGHT = 44;

/** Positions of the spans of these steps, in time order; only the operators' own where there are such. */
export function spansOf(p: Profile, steps: ReadonlySet<number>): Uint32Array {
  const wanted = new Uint8Array(p.steps.length);
  for (const i of steps) wanted[i] = 1;
  const { n, step, category } = p.spans;
  let own = 0;
  let all = 0;
  for (let i = 0; i < n; i++) {
    if (step[i] < 0 || !wanted[step[i]]) continue;
    all++;
    if (category[i] === Cat.Operator) own++;
  }
  const found = new Uint32Array(own || all);
  let at = 0;
  for (let i = 0; i < n; i++) {
    if (step[i] >= 0 && wanted[step[i]] && (!own || category[i] === Cat.Operator)) found[at++] = i;
  }
  return found;
}

export class Strip {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly words = h("p", { class: "faint" });
  private readonly bodies = h("p", { class: "graph-bodies" });
  private readonly page: Page;
  private readonly enter: (body: TableInfo) => void;
  private spans: Uint32Array = new Uint32Array(0);
  private steps: ReadonlySet<number> | null = null;

  constructor(page: Page, enter: (body: TableInfo) => void) {
    this.page = page;
    this.enter = enter;
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      onclick: (e: MouseEvent) => this.choose(this.nearest(e)),
      onkeydown: (e: KeyboardEvent) => {
        const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
        if (!step) return;
        e.preventDefault();
        e.stopPropagation();
        this.choose(this.chosen() + step);
      },
    });
    this.element = h("div", { class: "graph-strip" }, this.bodies, this.words, this.canvas);
  }

  private chosen(): number {
    return this.spans.indexOf(this.page.selection.span);
  }
  private nearest(e: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    return Math.floor(((e.clientX - box.left) / box.width) * this.spans.length);
  }
  private choose(k: number): void {
    if (!this.spans.length) return;
    this.page.selectSpan(this.spans[Math.min(this.spans.length - 1, Math.max(0, k))]);
  }

  /** After a change of the selection or of the size. */
  show(): void {
    const { profile: p, selection } = this.page;
    if (selection.steps !== this.steps) {
      const same = this.steps?.size === 1 && selection.steps.size === 1 && this.steps.has([...selection.steps][0]);
      this.steps = selection.steps;
      if (!same) {
        this.spans = selection.steps.size ? spansOf(p, selection.steps) : new Uint32Array(0);
        this.describe(p);
      }
    }
    this.canvas.hidden = !this.spans.length;
    if (this.spans.length) this.draw(p);
  }

  private describe(p: Profile): void {
    const inside = [...(this.steps ?? [])].flatMap((i) => bodiesOf(p, i));
    clear(this.bodies);
    this.bodies.hidden = !inside.length;
    append(this.bodies, [inside.length === 1 ? "Its body: " : "Its bodies: ", inside.slice(0, 8).map((info) => button(tableLabel(p, info), () => this.enter(info)))]);
    clear(this.words);
    if (!this.spans.length) {
      this.words.append(this.steps?.size ? "The selected step has no spans in this profile." : "Select a step to see how long it took in each run.");
      return;
    }
    const timed = this.spans.filter((i) => !isWarmup(p, i));
    const figures = Float64Array.from(timed.length ? timed : this.spans, (i) => p.spans.duration[i]).sort();
    const n = figures.length;
    const median = (figures[(n - 1) >> 1] + figures[n >> 1]) / 2;
    const warm = this.spans.length - timed.length;
    const text = `${f.count(n)} ${n === 1 ? "execution" : "executions"}${warm && timed.length ? ` and ${f.count(warm)} to warm up (grey)` : ""}: min ${f.time(figures[0])}, median ${f.time(median)}, max ${f.time(figures[n - 1])}`;
    this.words.append(text);
    this.canvas.setAttribute("aria-label", `Durations of the selected step over the runs: left and right choose one. ${text}`);
  }

  /** One bar per span; where they are too many for the pixels, the longest of each pixel. */
  private draw(p: Profile): void {
    const colors = theme();
    const width = Math.max(40, this.element.clientWidth - 32);
    const c = sharp(this.canvas, width, HEIGHT);
    c.fillStyle = colors.paper;
    c.fillRect(0, 0, width, HEIGHT);
    const n = this.spans.length;
    let most = 0;
    for (const i of this.spans) most = Math.max(most, p.spans.duration[i]);
    const columns = Math.min(n, Math.floor(width));
    const step = width / columns;
    for (let k = 0; k < columns; k++) {
      let high = 0;
      let at = 0;
      for (let i = Math.floor((k * n) / columns); i < Math.floor(((k + 1) * n) / columns); i++) {
        const d = p.spans.duration[this.spans[i]];
        if (d >= high) {
          high = d;
          at = this.spans[i];
        }
      }
      const size = most > 0 ? Math.max(1, (high / most) * (HEIGHT - 4)) : 1;
      c.fillStyle = isWarmup(p, at) ? colors.grey : colors.accent;
      c.fillRect(k * step, HEIGHT - size, Math.max(1, step > 3 ? step - 1 : step), size);
    }
    const chosen = this.chosen();
    if (chosen < 0) return;
    c.strokeStyle = colors.bad;
    c.lineWidth = 2;
    const x = ((chosen + 0.5) / n) * width;
    c.strokeRect(Math.max(1, x - Math.max(2, step / 2)), 1, Math.max(4, step), HEIGHT - 2);
  }
}
