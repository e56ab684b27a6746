// SPDX-License-Identifier: Apache-2.0
// The flame graph: where a run's time goes, by operator type, node and thread, as the usual time of the measured runs. A
// frame that is clicked fills the width; the number of that frame is in the address.
import { onTheme } from "../colors";
import { append, button, empty, h, perFrame, sharp, tooltip } from "../dom";
import * as f from "../format";
import { CanvasSurface, pictureButtons, save, SvgSurface } from "../picture";
import { Cat, type Profile, stepNode } from "../profile";
import type { Page } from "../state";
import type { Opened, View } from "../view";
import { boxAt, draw, layOut, type Look, ROW } from "./timeline_icicle";
import { Paint } from "./timeline_paint";
import { buildTree, childrenOf, folded, KIND_GAP, KIND_TYPE, matchedTime, ROOT, type Tree } from "./timeline_tree";

const trees = new WeakMap<Profile, { measured?: Tree; all?: Tree }>();
function treeOf(p: Profile, warmups: boolean): Tree {
  let made = trees.get(p);
  if (!made) trees.set(p, (made = {}));
  return warmups ? (made.all ??= buildTree(p, true)) : (made.measured ??= buildTree(p, false));
}

class Flame implements Opened {
  readonly search: HTMLInputElement;
  private readonly page: Page;
  private readonly p: Profile;
  private readonly v: Look;
  private paint: Paint;
  private heavy: boolean;
  private orders: HTMLButtonElement[] = [];
  private readonly canvas = h("canvas", { tabindex: 0, role: "img" });
  private readonly stage = h("div", { class: "stage fl-stage" }, this.canvas);
  private readonly found = h("span", { class: "faint", role: "status" });
  private readonly said = h("p", { class: "visually-hidden", role: "status" });
  private readonly out = button("Zoom out", () => this.zoom(this.v.tree.parent[this.v.root]), { class: "fl-out", title: "One frame out (Esc)" });
  private readonly nothing = h(
    "div",
    null,
    empty(
      "No measured run",
      "This profile holds no run that was measured, so there is no time per run to show. Tick “warm-ups”, or measure runs:",
      "sonde profile MODEL -n 20 -o report.html",
    ),
  );
  private readonly redraw = perFrame(() => this.paintNow());
  private readonly closing: (() => void)[] = [];

  constructor(root: HTMLElement, page: Page) {
    this.page = page;
    this.p = page.profile;
    this.paint = new Paint(this.p);
    this.heavy = page.params.get("order") !== "time";
    const tree = treeOf(this.p, page.params.get("warm") === "1");
    const wanted = Number(page.params.get("root") ?? ROOT);
    this.v = {
      tree, boxes: [], root: Number.isInteger(wanted) && wanted > 0 && wanted < tree.n ? wanted : ROOT, width: 100, height: 100,
      cursor: -1, hover: -1, steps: page.selection.steps, hit: null,
    };
    this.search = h("input", { type: "search", placeholder: "Search frames", "aria-label": "Search frames", oninput: () => this.lookFor() });
    this.search.value = page.params.get("q") ?? "";
    root.classList.add("full");
    append(root, [this.toolbar(), this.nothing, this.stage, this.said]);
    this.closing.push(
      onTheme(() => {
        this.paint = new Paint(this.p);
        this.redraw();
      }),
    );
    this.listen();
    this.lookFor();
    this.resized();
    this.reveal();
  }

  close(): void {
    for (const act of this.closing) act();
    tooltip(null);
  }

  private toolbar(): HTMLElement {
    const order = (heavy: boolean, title: string): HTMLButtonElement =>
      button(title, () => this.setOrder(heavy), { "aria-pressed": String(this.heavy === heavy) });
    this.orders = [order(true, "Left heavy"), order(false, "In order of time")];
    const warm: HTMLInputElement = h("input", { type: "checkbox", onchange: () => this.setWarmups(warm.checked) });
    warm.checked = this.page.params.get("warm") === "1";
    return h(
      "div",
      { class: "toolbar" },
      this.search,
      this.found,
      h("span", { class: "segments", role: "group", "aria-label": "Order of frames" }, this.orders),
      h("label", { class: "fl-check" }, warm, " warm-ups"),
      this.out,
      h("span", { class: "space" }),
      button("Folded", () => this.saveFolded(), { title: "Save folded stacks (ns per run) for other flame graph tools" }),
      pictureButtons("flame", () => this.canvas, () => this.svg()),
    );
  }

  private setOrder(heavy: boolean): void {
    this.heavy = heavy;
    this.page.set("order", heavy ? null : "time");
    this.orders.forEach((b, k) => b.setAttribute("aria-pressed", String(heavy === (k === 0))));
    this.place();
  }
  private setWarmups(on: boolean): void {
    this.page.set("warm", on ? "1" : null);
    this.v.tree = treeOf(this.p, on);
    this.v.cursor = this.v.hover = -1;
    this.lookFor();
    this.zoom(ROOT);
  }
  private saveFolded(): void {
    save("flame.folded.txt", new Blob([folded(this.v.tree)], { type: "text/plain" }));
  }

  // ---- drawing
  resized(): void {
    const width = Math.floor(this.stage.clientWidth);
    if (width < 1) return;
    this.v.width = width;
    this.place();
    this.paintNow();
  }
  /** Lays the frames out anew. */
  private place(): void {
    const { v } = this;
    const some = v.tree.total[ROOT] > 0;
    this.nothing.hidden = some;
    this.stage.hidden = !some;
    v.boxes = some ? layOut(v.tree, v.root, v.width, this.heavy) : [];
    let rows = 1;
    for (const box of v.boxes) rows = Math.max(rows, box.row + 1);
    v.height = rows * ROW;
    this.out.disabled = v.root === ROOT;
    this.redraw();
  }
  private paintNow(): void {
    const { v } = this;
    draw(new CanvasSurface(sharp(this.canvas, v.width, v.height)), v, this.paint);
    const name = f.shorten(f.plain(this.nameOf(v.root)), 60);
    this.canvas.setAttribute(
      "aria-label",
      `Flame graph of ${name}: ${f.time(v.tree.total[v.root] / v.tree.runs)} per run, median of ${f.count(v.tree.runs)} runs. ` +
        "Arrow keys move between frames, Enter zooms, Escape zooms out.",
    );
  }
  private svg(): string {
    const to = new SvgSurface(this.v.width, this.v.height);
    draw(to, { ...this.v, cursor: -1, hover: -1 }, this.paint);
    return to.done(this.paint.theme.paper);
  }

  // ---- frames
  private nameOf(k: number): string {
    return this.v.tree.names[this.v.tree.name[k]] || "(unnamed)";
  }
  private lines(k: number): string[] {
    const { tree } = this.v;
    const ns = tree.total[k];
    const lines = [
      f.shorten(f.plain(this.nameOf(k)), 160),
      `${f.time(ns / tree.runs)} per run, ${f.percent(ns / tree.total[ROOT])} of all`,
    ];
    if (tree.kind[k] === KIND_GAP) {
      lines.push("time that is in no frame beside it");
      const cost = this.p.summary.cost_ns;
      if (cost && tree.kind[tree.parent[k]] === Cat.Iteration) lines.push(`about ${f.time(cost)} per run is the profiler's own cost`);
      return lines;
    }
    // The frame around the operators holds what recording took; the latency of the summary does not.
    if (this.p.summary.cost_ns && (k === ROOT || tree.kind[k] === Cat.Iteration)) lines.push(`${f.time(this.p.summary.cost_ns)} of it is the profiler's own cost, which is not in the latency`);
    lines.push(`${f.time(tree.self[k] / tree.runs)} of it in no frame below; ${f.count(tree.calls[k] / tree.runs)} calls per run`);
    if (tree.width[k] < 0.99 * ns) lines.push("drawn narrower: threads work side by side");
    const step = tree.kind[k] === KIND_TYPE ? undefined : this.p.steps[tree.step[k]];
    if (step?.kernel) lines.push(f.shorten(f.plain(step.kernel), 120));
    if (step && stepNode(step) !== this.nameOf(k)) lines.push(f.shorten(f.plain(stepNode(step)), 160));
    return lines;
  }
  private zoom(k: number): void {
    this.v.root = Math.max(ROOT, k);
    this.page.set("root", this.v.root === ROOT ? null : String(this.v.root));
    this.place();
  }
  private choose(k: number): void {
    this.v.cursor = k;
    this.said.textContent = this.lines(k).slice(0, 2).join(", ");
    this.zoom(k);
    const step = this.v.tree.step[k];
    if (step < 0) return;
    const row = this.p.steps[step].rows[0];
    if (this.v.tree.kind[k] === KIND_TYPE && row >= 0) this.page.selectRow("op", row);
    else this.page.selectStep(step);
  }
  selected(): void {
    this.v.steps = this.page.selection.steps;
    this.reveal();
    this.redraw();
  }
  /** Brings the widest frame of the selected steps into sight, if none of them is. */
  private reveal(): void {
    const { tree, steps } = this.v;
    if (!steps.size) return;
    const is = (k: number): boolean => k >= 0 && tree.kind[k] !== KIND_TYPE && steps.has(tree.step[k]);
    let box = this.v.boxes.find((b) => is(b.frame));
    if (!box) {
      let best = -1;
      for (let k = 1; k < tree.n; k++) if (is(k) && (best < 0 || tree.width[k] > tree.width[best])) best = k;
      if (best < 0) return;
      this.zoom(tree.parent[best]);
      box = this.v.boxes.find((b) => is(b.frame));
    }
    if (box) this.see(box.row);
  }
  private see(row: number): void {
    const { stage } = this;
    if (row * ROW < stage.scrollTop) stage.scrollTop = row * ROW;
    else if ((row + 1) * ROW > stage.scrollTop + stage.clientHeight) stage.scrollTop = (row + 1) * ROW - stage.clientHeight;
  }

  // ---- search
  private lookFor(): void {
    const wanted = this.search.value.trim().toLowerCase();
    const { tree } = this.v;
    this.page.set("q", this.search.value || null);
    this.v.hit = wanted ? Uint8Array.from(tree.names, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0)) : null;
    const ns = this.v.hit ? matchedTime(tree, this.v.hit) : 0;
    this.found.textContent = this.v.hit
      ? ns > 0 ? `${f.time(ns / tree.runs)} per run, ${f.percent(ns / tree.total[ROOT])}` : "no match"
      : "";
    this.redraw();
  }

  // ---- pointer and keys
  private listen(): void {
    const at = (e: MouseEvent): { x: number; y: number } => {
      const box = this.canvas.getBoundingClientRect();
      return { x: e.clientX - box.left, y: e.clientY - box.top };
    };
    this.canvas.addEventListener("click", (e) => {
      const box = boxAt(this.v.boxes, at(e).x, at(e).y);
      if (box && box.frame >= 0) this.choose(box.frame);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (e.pointerType === "touch") return;
      const box = boxAt(this.v.boxes, at(e).x, at(e).y);
      if (!box) tooltip(null);
      else if (box.frame < 0) tooltip(e, [`${f.count(box.count)} narrow frames`, "zoom in to see them"]);
      else tooltip(e, this.lines(box.frame));
      const hover = box ? box.frame : -1;
      if (hover === this.v.hover) return;
      this.v.hover = hover;
      this.redraw();
    });
    this.canvas.addEventListener("pointerleave", () => {
      tooltip(null);
      this.v.hover = -1;
      this.redraw();
    });
  }
  key(e: KeyboardEvent): boolean {
    const target = e.target as HTMLElement;
    if (e.defaultPrevented || (target.tagName === "BUTTON" && e.key === "Enter")) return false;
    const { v } = this;
    if (e.key === "Escape" && v.root !== ROOT) {
      this.zoom(v.tree.parent[v.root]);
      return true;
    }
    if (e.key === "Enter" && v.cursor >= 0) {
      this.choose(v.cursor);
      return true;
    }
    if (!/^Arrow/.test(e.key)) return false;
    const to = v.cursor < 0 ? v.root : this.beside(v.cursor, e.key);
    if (to >= 0) this.moveTo(to);
    return true;
  }
  private beside(k: number, key: string): number {
    const { tree } = this.v;
    if (key === "ArrowUp") return tree.parent[k];
    if (key === "ArrowDown") return childrenOf(tree, k, this.heavy)[0] ?? -1;
    if (k === ROOT) return -1;
    const beside = childrenOf(tree, tree.parent[k], this.heavy);
    return beside[beside.indexOf(k) + (key === "ArrowLeft" ? -1 : 1)] ?? -1;
  }
  private moveTo(k: number): void {
    this.v.cursor = k;
    let box = this.v.boxes.find((b) => b.frame === k);
    if (!box) {
      this.zoom(this.v.tree.parent[k]); // outside of what is zoomed to, or too narrow there
      box = this.v.boxes.find((b) => b.frame === k);
    }
    if (box) this.see(box.row);
    this.said.textContent = this.lines(k).slice(0, 2).join(", ");
    this.redraw();
  }
}

export const flame: View = {
  id: "flame",
  title: "Flame",
  keys: [
    ["← →", "frame beside"],
    ["↑ ↓", "frame around, widest frame inside"],
    ["Enter", "zoom to the frame and select it"],
    ["Esc", "zoom out"],
  ],
  shown: () => true,
  open(root, page) {
    if (page.profile.spans.n) return new Flame(root, page);
    root.append(empty("This profile has no spans", "A flame graph needs them. Record a profile:", "sonde profile MODEL -o report.html"));
    return {};
  },
};
