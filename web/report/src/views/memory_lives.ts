// SPDX-License-Identifier: Apache-2.0
// The picture of tensor lifetimes, with its zoom, its pointer and its keys; and the table of who holds memory at a step.
import { opColor, theme } from "../colors";
import { button, h, perFrame, sharp, tooltip } from "../dom";
import * as f from "../format";
import { opLegend } from "../legend";
import { tidy } from "../names";
import { CanvasSurface } from "../picture";
import { type Life, type Profile, stepNode, stepTitle } from "../profile";
import type { Page } from "../state";
import { Table } from "../table";
import { drawingButtons } from "./graph_picture";
import { drawLives, lifeAt, type LivesScene, shapeOf, stepOf } from "./memory_draw";
import { aliveAt, makerOf, type Plan, userOf } from "./memory_plan";

const CLOSEST = 4; // steps in sight at least

const titleOf = (p: Profile, step: number): string => (step < 0 ? "" : `${stepTitle(p.steps[step])} ${stepNode(p.steps[step])}`);

/** Lives that the selected steps make or read; null: nothing of this binding is selected. */
function touchedBy(page: Page, plan: Plan): Set<Life> | null {
  const chosen = [...page.selection.steps].map((i) => page.profile.steps[i]).filter((s) => s?.table === plan.table);
  if (!chosen.length) return null;
  const names = new Set(chosen.flatMap((s) => [...s.inputs, ...s.outputs].map((t) => t.name)).filter(Boolean));
  const indices = new Set(chosen.map((s) => s.index));
  const touches = (l: Life): boolean => indices.has(l.first) || indices.has(l.last) || (names.has(l.name) && l.place !== "workspace");
  return new Set([...plan.arena, ...plan.others].filter(touches));
}

export class Lives {
  readonly element: HTMLElement;
  readonly holders: HTMLElement;
  private readonly page: Page;
  readonly plan: Plan;
  readonly search: HTMLInputElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly title = h("h2", { "aria-live": "polite" });
  private readonly table: Table<Life>;
  private readonly scene: LivesScene;
  private readonly draw = perFrame(() => this.paint());

  constructor(page: Page, plan: Plan, ...beside: (Node | null)[]) {
    this.page = page;
    this.plan = plan;
    const [from, to] = (page.params.get("steps") ?? "").split("-").map(Number);
    const good = from >= 0 && to <= plan.steps && to - from >= Math.min(CLOSEST, plan.steps);
    const step = Number(page.params.get("step") ?? plan.peak);
    this.scene = {
      p: page.profile, plan, theme: theme(), from: good ? Math.floor(from) : 0, to: good ? Math.floor(to) : plan.steps, width: 800,
      step: step >= 0 && step < plan.steps ? Math.floor(step) : plan.peak, touched: touchedBy(page, plan),
    };
    this.canvas = this.makeCanvas();
    this.table = this.makeTable();
    this.search = this.table.search;
    const tools = h(
      "div",
      { class: "bar" },
      beside,
      h(
        "span",
        { class: "buttons" },
        button("+", () => this.zoom(0.5), { "aria-label": "Zoom in" }),
        button("−", () => this.zoom(2), { "aria-label": "Zoom out" }),
        button("All", () => this.window(0, plan.steps), { "aria-label": "All steps" }),
        button("Peak", () => this.at(plan.peak), { title: "Back to the step of the peak" }),
      ),
    );
    const picture = (): { width: number; height: number; draw: (s: Parameters<typeof drawLives>[0]) => void } => ({
      width: this.scene.width, height: shapeOf(plan).height, draw: (s) => drawLives(s, this.scene),
    });
    this.element = h(
      "section",
      { class: "card wide" },
      h("h2", null, "Tensor lifetimes", drawingButtons("lifetimes", picture)),
      tools,
      h("div", { class: "memory-lives" }, this.canvas),
      h("p", { class: "faint memory-sentence" }, this.fragmentation()),
    );
    this.holders = h("section", { class: "card wide" }, this.title, this.table.element);
    this.list();
  }

  private fragmentation(): string {
    const { arenaBytes, arenaPeak } = this.plan;
    if (!arenaBytes) return "Nothing of this binding lies in an arena.";
    const lost = 1 - arenaPeak / arenaBytes;
    const whole = `The arena takes ${f.bytes(arenaBytes)}; at most ${f.bytes(arenaPeak)} of it are live at once. `;
    return lost < 0.0005 ? `${whole}Nothing is lost to fragmentation.` : `${whole}${f.percent(lost)} is lost to alignment and fragmentation.`;
  }

  // ---------------------------------------------------------------- the picture
  private makeCanvas(): HTMLCanvasElement {
    let from: { x: number; left: number; moved: boolean } | null = null;
    const point = (e: MouseEvent): [number, number] => {
      const box = this.canvas.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    const canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label": `Tensor lifetimes over ${f.count(this.plan.steps)} steps; the peak is ${f.bytes(this.plan.live[this.plan.peak])} at step ${f.count(this.plan.peak)}. Left and right choose a step, whose holders are listed in the table below; Enter selects it.`,
      onpointerdown: (e: PointerEvent) => {
        if (e.button) return;
        canvas.setPointerCapture(e.pointerId);
        from = { x: e.clientX, left: this.scene.from, moved: false };
      },
      onpointermove: (e: PointerEvent) => {
        if (!from) {
          const life = lifeAt(this.scene, ...point(e));
          canvas.classList.toggle("pick", life !== null);
          return tooltip(e, life ? this.tip(life) : []);
        }
        const steps = ((from.x - e.clientX) / this.scene.width) * (this.scene.to - this.scene.from);
        from.moved ||= Math.abs(e.clientX - from.x) > 4;
        if (from.moved) this.shift(Math.round(from.left + steps) - this.scene.from);
      },
      onpointerup: (e: PointerEvent) => {
        if (from && !from.moved) this.tap(...point(e));
        from = null;
      },
      onpointercancel: () => (from = null),
      onpointerleave: () => tooltip(null),
    });
    canvas.addEventListener(
      "wheel",
      (e) => {
        if (!e.ctrlKey) return; // the page scrolls
        e.preventDefault();
        this.zoom(e.deltaY > 0 ? 1.25 : 0.8, stepOf(this.scene, point(e)[0]));
      },
      { passive: false },
    );
    return canvas;
  }
  private tip(life: Life): string[] {
    const { p } = this.scene;
    const user = userOf(this.plan, life);
    return [
      f.shorten(f.plain(life.name || "unnamed"), 80),
      `${f.bytes(life.bytes)}, ${life.place}${life.place === "arena" ? ` at offset ${f.count(life.offset)}` : ""}`,
      `made by ${f.shorten(f.plain(titleOf(p, makerOf(this.plan, life)) || `step ${life.first}`), 80)}`,
      user >= 0 ? `last used by ${f.shorten(f.plain(titleOf(p, user)), 80)}` : "lives to the end of the run",
      `steps ${f.count(life.first)} to ${f.count(Math.min(life.last, this.plan.steps - 1))}`,
    ];
  }
  private tap(x: number, y: number): void {
    const life = lifeAt(this.scene, x, y);
    if (life) this.page.selectStep(makerOf(this.plan, life));
    else this.at(stepOf(this.scene, x));
  }
  /** A key on the picture, or on nothing; true: used. Arrows and Enter belong to other controls unless it has the focus. */
  key(e: KeyboardEvent): boolean {
    const { scene } = this;
    const here = e.target === this.canvas;
    if (!here && (e.key.length > 1 || (e.target !== document.body && (e.target as HTMLElement).id !== "view"))) return false;
    const page = Math.max(1, Math.round((scene.to - scene.from) / 10));
    const act: Record<string, () => void> = {
      ArrowLeft: () => this.at(scene.step - 1),
      ArrowRight: () => this.at(scene.step + 1),
      PageUp: () => this.at(scene.step - page),
      PageDown: () => this.at(scene.step + page),
      Home: () => this.at(this.plan.peak),
      Enter: () => this.page.selectStep(this.plan.stepAt[scene.step]),
      w: () => this.zoom(0.8, scene.step),
      "+": () => this.zoom(0.8, scene.step),
      s: () => this.zoom(1.25, scene.step),
      "-": () => this.zoom(1.25, scene.step),
      a: () => this.shift(-page),
      d: () => this.shift(page),
      "0": () => this.window(0, this.plan.steps),
    };
    const what = act[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    what?.();
    return Boolean(what);
  }

  private window(from: number, to: number): void {
    const size = Math.min(this.plan.steps, Math.max(CLOSEST, Math.round(to - from)));
    this.scene.from = Math.max(0, Math.min(this.plan.steps - size, Math.round(from)));
    this.scene.to = this.scene.from + size;
    this.page.set("steps", size === this.plan.steps ? null : `${this.scene.from}-${this.scene.to}`);
    this.draw();
  }
  private zoom(factor: number, around = (this.scene.from + this.scene.to) / 2): void {
    const { from, to } = this.scene;
    this.window(around - (around - from) * factor, around + (to - around) * factor);
  }
  private shift(steps: number): void {
    this.window(this.scene.from + steps, this.scene.to + steps);
  }
  private at(step: number): void {
    const { scene, plan } = this;
    scene.step = Math.max(0, Math.min(plan.steps - 1, step));
    this.page.set("step", scene.step === plan.peak ? null : String(scene.step));
    if (scene.step < scene.from) this.shift(scene.step - scene.from);
    if (scene.step >= scene.to) this.shift(scene.step - scene.to + 1);
    this.list();
    this.draw();
  }

  // ---------------------------------------------------------------- the holders
  private makeTable(): Table<Life> {
    const { plan, page } = this;
    const p = page.profile;
    const total = (): number => Math.max(1, plan.live[this.scene.step]);
    const plainTitle = (step: number, other: string): string => f.shorten(f.plain(titleOf(p, step) || other), 120);
    const nodeName = (step: number): string => (p.steps[step] ? tidy(stepNode(p.steps[step])) : "");
    return new Table<Life>({
      name: "holders",
      rows: [],
      sort: { column: "bytes", down: true },
      words: (l) => `${l.name} ${l.place} ${titleOf(p, makerOf(plan, l))} ${titleOf(p, userOf(plan, l))}`,
      choose: (l) => page.selectStep(makerOf(plan, l)),
      chosen: (l) => page.selection.steps.has(makerOf(plan, l)),
      height: "420px",
      columns: [
        {
          id: "name",
          title: "Value",
          name: (l) => tidy(l.name),
          text: (l) => l.name || "(unnamed)",
          color: (l) => opColor(p, p.steps[makerOf(plan, l)]?.op ?? "", this.scene.theme.dark),
        },
        { id: "bytes", title: "Bytes", number: true, text: (l) => f.bytes(l.bytes), value: (l) => l.bytes, bar: (l) => l.bytes / total() },
        { id: "share", title: "Share", hint: "Of all that is live at this step", number: true, text: (l) => f.percent(l.bytes / total()), value: (l) => l.bytes / total() },
        { id: "place", title: "Where", hint: "Where its memory is", text: (l) => l.place, width: "7rem" },
        { id: "maker", title: "Made by", name: (l) => nodeName(makerOf(plan, l)), text: (l) => plainTitle(makerOf(plan, l), `step ${l.first}`) },
        { id: "user", title: "Last used by", name: (l) => nodeName(userOf(plan, l)), text: (l) => plainTitle(userOf(plan, l), l.last >= plan.steps ? "the caller" : `step ${l.last}`) },
        { id: "steps", title: "Steps", hint: "How many steps it lives", number: true, text: (l) => f.count(l.last - l.first + 1), value: (l) => l.last - l.first + 1 },
      ],
    });
  }
  private list(): void {
    const { scene, plan } = this;
    const title = titleOf(scene.p, plan.stepAt[scene.step] ?? -1);
    this.title.textContent = `${scene.step === plan.peak ? "Holders of the peak" : "Live"} at step ${f.count(scene.step)}: ${f.bytes(plan.live[scene.step])}${title ? ` in ${f.shorten(f.plain(title), 80)}` : ""}`;
    this.table.rows = aliveAt(plan, scene.step);
  }

  // ---------------------------------------------------------------- frame
  private paint(): void {
    const { scene } = this;
    const { height } = shapeOf(this.plan);
    const c = sharp(this.canvas, scene.width, height);
    c.fillStyle = getComputedStyle(this.element).backgroundColor;
    c.fillRect(0, 0, scene.width, height);
    drawLives(new CanvasSurface(c), scene);
  }
  recolor(): void {
    this.scene.theme = theme();
    this.table.refresh();
    this.draw();
  }
  resized(): void {
    const box = this.canvas.parentElement;
    if (box?.clientWidth) this.scene.width = Math.max(240, box.clientWidth);
    this.draw();
  }
  selected(): void {
    const { scene, plan } = this;
    scene.touched = touchedBy(this.page, plan);
    const first = [...(scene.touched ?? [])][0];
    if (first && (first.last < scene.from || first.first >= scene.to)) this.shift(first.first - scene.from);
    this.table.refresh();
    this.table.reveal();
    this.draw();
  }
}

/** The colours of the types that made something. */
export const livesLegend = (p: Profile, plan: Plan): HTMLElement =>
  opLegend(p, new Set([...plan.arena, ...plan.others].map((l) => p.steps[makerOf(plan, l)]?.op ?? "")));
