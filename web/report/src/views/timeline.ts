// SPDX-License-Identifier: Apache-2.0
// The timeline: every span on its thread, counters below, the whole profile above. The window of time and the
// selected stretch are in the address.
import { onTheme } from "../colors";
import { append, button, clear, empty, h, perFrame, sharp, tooltip } from "../dom";
import * as f from "../format";
import { density, type Lanes, lanesOf, typicalRun, placeAt, rowsOf } from "../lanes";
import { CanvasSurface, pictureButtons, SvgSurface } from "../picture";
import type { Profile } from "../profile";
import type { Page } from "../state";
import type { Opened, View } from "../view";
import { foldButtons, placeFold, runAt, type RunPicker, runPicker } from "./timeline_bar";
import { tracksOf } from "./timeline_counters";
import { draw, trackLines } from "./timeline_draw";
import { find, firstFrom, placeOf, spansOf } from "./timeline_find";
import { flowsOf } from "./timeline_flows";
import { listen } from "./timeline_input";
import { beside, spanLines, whichSpan } from "./timeline_moves";
import { Paint } from "./timeline_paint";
import * as scene from "./timeline_scene";
import { type StatsPanel, statsPanel } from "./timeline_stats";

const MINI_PARTS = 2048;
const DEBOUNCED = 500_000; // spans from which a search waits for the end of typing

const densities = new WeakMap<Profile, Float32Array>();
function densityOf(p: Profile): Float32Array {
  let made = densities.get(p);
  if (!made) densities.set(p, (made = density(p, MINI_PARTS)));
  return made;
}

class Timeline implements Opened {
  readonly search: HTMLInputElement;
  private readonly page: Page;
  private readonly p: Profile;
  private readonly lanes: Lanes;
  private readonly v: scene.Scene;
  private paint: Paint;
  private hits: Uint32Array | null = null;
  private readonly collapsed = new Set<string>();
  private readonly canvas = h("canvas", { tabindex: 0, role: "img", class: "tl-canvas" });
  private readonly folds = h("div", { class: "tl-folds" });
  private readonly gutter = h("div", { class: "tl-gutter" }, this.folds);
  private readonly stage = h("div", { class: "stage tl-stage" }, this.canvas, this.gutter);
  private readonly found = h("span", { class: "faint tl-found", role: "status" });
  private readonly runs: RunPicker;
  private readonly stats: StatsPanel;
  private readonly redraw = perFrame(() => this.paintNow());
  private readonly closing: (() => void)[] = [];
  private miniOffset = 0;
  private timer = 0;

  constructor(root: HTMLElement, page: Page) {
    this.page = page;
    const p = (this.p = page.profile);
    this.lanes = lanesOf(p);
    this.paint = new Paint(p);
    const tracks = tracksOf(p);
    const [t0, t1] = scene.clampWindow(p.end, ...(scene.readWindow(page.params.get("t")) ?? typicalRun(p) ?? [0, p.end]));
    this.v = {
      p, lanes: this.lanes, tracks, items: [], density: densityOf(p),
      t0, t1, scroll: 0, width: 100, height: 100, gutter: 150, hits: null, marked: null, selected: -1, flows: [],
      area: null, hover: -1,
    };
    this.search = h("input", {
      type: "search",
      placeholder: "Search spans",
      title: "Names, nodes, kernels",
      "aria-label": "Search spans by name, node or kernel",
      oninput: () => this.typed(),
      onkeydown: (e: KeyboardEvent) => this.searchKey(e),
    });
    this.search.value = page.params.get("q") ?? "";
    this.runs = runPicker(p, () => this.runInSight(), (run) => this.showRun(run));
    this.stats = statsPanel(p, (i) => this.paint.span(i), {
      choose: (i) => this.page.selectSpan(i),
      zoom: () => this.v.area && this.look(...this.v.area, 0.02),
      close: () => this.setArea(null),
    });
    root.classList.add("full");
    append(root, [this.toolbar(), this.stage, this.stats.element]);
    const watch = new ResizeObserver(() => this.resized()); // the table below takes some of the room
    watch.observe(this.stage);
    this.closing.push(
      () => watch.disconnect(),
      listen(this.stage, this.canvas, this.gestures()),
      onTheme(() => {
        this.paint = new Paint(p);
        this.redraw();
      }),
    );
    this.resized();
    if (this.search.value) this.lookFor(this.search.value);
    this.mark();
    const area = scene.readWindow(page.params.get("a"));
    if (area) this.setArea(area);
    if (!page.params.has("t")) this.reveal();
  }

  close(): void {
    clearTimeout(this.timer);
    for (const act of this.closing) act();
    tooltip(null);
  }

  private toolbar(): HTMLElement {
    const picture = pictureButtons("timeline", () => this.canvas, () => this.svg());
    return h(
      "div",
      { class: "toolbar" },
      this.search,
      this.found,
      this.runs.element,
      button("All", () => this.look(0, this.p.end, 0), { title: "The whole profile (0)" }),
      button("+", () => this.zoom(0.5), { "aria-label": "Zoom in", title: "Zoom in (W)" }),
      button("−", () => this.zoom(2), { "aria-label": "Zoom out", title: "Zoom out (S)" }),
      button("Statistics", () => this.toggleArea(), { title: "Statistics of the time in sight (M); Shift+drag selects a part" }),
      h("span", { class: "space" }),
      picture,
    );
  }

  // ---- drawing
  private paintNow(): void {
    const { v } = this;
    v.scroll = Math.min(scene.mostScroll(v), Math.max(0, v.scroll));
    draw(new CanvasSurface(sharp(this.canvas, v.width, v.height)), v, this.paint);
    this.folds.style.transform = `translateY(${-v.scroll}px)`;
    this.canvas.setAttribute(
      "aria-label",
      `Timeline of ${this.lanes.threads.length} ${this.lanes.threads.length === 1 ? "thread" : "threads"} from ${f.time(v.t0)} to ${f.time(v.t1)}. ` +
        "Arrow keys move along spans, W and S zoom, A and D pan.",
    );
    this.runs.now(this.runInSight());
  }
  private svg(): string {
    const to = new SvgSurface(this.v.width, this.v.height);
    draw(to, { ...this.v, hover: -1 }, this.paint);
    return to.done(this.paint.theme.paper);
  }
  resized(): void {
    const box = this.stage.getBoundingClientRect();
    if (box.width < 1) return;
    const { v } = this;
    v.width = Math.floor(box.width);
    v.height = Math.max(scene.TOP + 60, Math.floor(box.height));
    v.gutter = v.width < 600 ? 92 : 168;
    this.gutter.style.width = `${v.gutter}px`;
    this.layOut();
    this.placeFolds();
    this.paintNow(); // at once: a canvas of the old size would be seen stretched
  }

  /** Lanes and tracks, as high as the window allows. */
  private layOut(): void {
    this.v.items = scene.layOut(this.p, this.lanes, this.v.tracks, this.collapsed, this.v.height - scene.TOP);
  }
  private makeFolds(): void {
    clear(this.folds);
    append(this.folds, foldButtons(this.v.items, (item) => this.fold(item.id), (item) => this.see(item.y, item.height)));
  }
  private placeFolds(): void {
    if (this.folds.children.length !== this.v.items.length) return this.makeFolds();
    this.v.items.forEach((item, i) => placeFold(this.folds.children[i] as HTMLElement, item));
  }
  private fold(id: string): void {
    if (!this.collapsed.delete(id)) this.collapsed.add(id);
    this.layOut();
    const at = this.v.items.findIndex((item) => item.id === id);
    this.makeFolds();
    (this.folds.children[at] as HTMLElement | undefined)?.focus({ preventScroll: true });
    this.redraw();
  }

  // ---- window
  private put(t0: number, t1: number): void {
    [this.v.t0, this.v.t1] = scene.clampWindow(this.p.end, t0, t1);
    this.page.set("t", scene.writeWindow(this.v.t0, this.v.t1));
    this.redraw();
  }
  private look(from: number, to: number, room: number): void {
    const pad = (to - from) * room;
    this.put(from - pad, to + pad);
  }
  private lookAt(i: number, room: number): void {
    this.look(this.p.spans.start[i], this.p.spans.start[i] + this.p.spans.duration[i], room);
  }
  private zoom(factor: number, at = (this.v.t0 + this.v.t1) / 2): void {
    this.put(...scene.zoomWindow(this.p.end, this.v.t0, this.v.t1, factor, at));
  }
  private pan(share: number): void {
    const by = (this.v.t1 - this.v.t0) * share;
    this.put(this.v.t0 + by, this.v.t1 + by);
  }
  /** Scrolls so that a part of the lanes is to be seen. */
  private see(y: number, height: number): void {
    this.gutter.scrollTop = 0; // the browser moves it to a focused button; the canvas would not follow
    const room = this.v.height - scene.TOP;
    if (y < this.v.scroll) this.v.scroll = y - 4;
    else if (y + height > this.v.scroll + room) this.v.scroll = y + Math.min(height, room) - room + 4;
    this.redraw();
  }
  private runInSight(): number {
    return runAt(this.p, (this.v.t0 + this.v.t1) / 2);
  }
  private showRun(run: number): void {
    this.lookAt(this.p.runs.span[run], 0.03);
  }

  // ---- selection
  selected(): void {
    this.mark();
    this.tellHits();
    this.reveal();
    this.redraw();
  }
  private mark(): void {
    const { selection } = this.page;
    this.v.marked = selection.steps.size ? rowsOf(this.p.spans, this.lanes, spansOf(this.p, selection.steps)) : null;
    this.v.selected = selection.span;
    this.v.flows = flowsOf(this.p, selection.span);
    this.redraw();
  }
  /** Brings what is selected into sight: the span, or the nearest one of the selected steps. */
  private reveal(): void {
    const i = whichSpan(this.p, this.page.selection, this.v.t0, this.v.t1);
    if (i < 0) return;
    const { start, duration } = this.p.spans;
    const length = this.v.t1 - this.v.t0;
    const end = start[i] + duration[i];
    if (end < this.v.t0 || start[i] > this.v.t1) {
      const middle = start[i] + duration[i] / 2;
      if (duration[i] > length) this.lookAt(i, 0.1);
      else this.put(middle - length / 2, middle + length / 2);
    }
    const at = scene.spanBox(this.v, i);
    if (at) this.see(at.y, at.height);
  }
  private fit(): void {
    const i = whichSpan(this.p, this.page.selection, this.v.t0, this.v.t1);
    if (i >= 0) this.lookAt(i, 0.1);
    else if (this.v.area) this.look(...this.v.area, 0.02);
  }
  private setArea(area: [number, number] | null): void {
    this.v.area = area;
    this.page.set("a", area ? scene.writeWindow(...area) : null);
    if (area) this.stats.show(...area);
    else this.stats.element.hidden = true;
    this.redraw();
  }
  private toggleArea(): void {
    this.setArea(this.v.area ? null : [this.v.t0, this.v.t1]);
  }

  // ---- search
  private typed(): void {
    this.page.set("q", this.search.value || null);
    clearTimeout(this.timer);
    const go = (): void => this.lookFor(this.search.value);
    if (this.p.spans.n < DEBOUNCED) go();
    else this.timer = window.setTimeout(go, 200);
  }
  private lookFor(text: string): void {
    this.hits = find(this.p, text);
    this.v.hits = this.hits ? rowsOf(this.p.spans, this.lanes, this.hits) : null;
    this.tellHits();
    this.redraw();
  }
  private tellHits(): void {
    const { hits } = this;
    if (!hits) this.found.textContent = "";
    else if (!hits.length) this.found.textContent = "no match";
    else {
      const k = placeOf(hits, this.page.selection.span);
      const at = hits[k] === this.page.selection.span ? `${f.grouped(k + 1)} of ` : "";
      this.found.textContent = `${at}${f.grouped(hits.length)}`;
    }
  }
  private searchKey(e: KeyboardEvent): void {
    if (e.key !== "Enter") return;
    e.preventDefault();
    const list = this.hits;
    if (!list?.length) return;
    const now = this.page.selection.span;
    let k = placeOf(list, now >= 0 ? now : firstFrom(this.p.spans.start, this.v.t0));
    const here = list[k] === now;
    if (e.shiftKey) k--;
    else if (here) k++;
    this.page.selectSpan(list[(k + list.length) % list.length]);
  }

  // ---- pointer
  private spanAt(x: number, y: number): { span: number; more: number } | null {
    const at = x >= this.v.gutter && y >= scene.TOP ? scene.itemAt(this.v, y) : null;
    const row = at?.item.kind === "lane" ? this.lanes.threads[at.item.index].rows[at.row] : undefined;
    if (!row) return null;
    const pixel = scene.pixelTime(this.v);
    const t = scene.xToTime(this.v, x);
    const k = placeAt(this.p.spans, row, t, 2 * pixel);
    if (k < 0) return null;
    const more = placeAt(this.p.spans, row, t + pixel, 0) - k;
    return { span: row[k], more: Math.max(0, more) };
  }
  private gestures(): Parameters<typeof listen>[2] {
    const { v } = this;
    return {
      pan: (dx, dy) => {
        v.scroll -= dy;
        if (dx) this.pan(-dx / scene.plotWidth(v));
        else this.redraw();
      },
      zoom: (factor, x) => this.zoom(factor, scene.xToTime(v, Math.max(v.gutter, x))),
      inMini: (_x, y) => y < scene.MINI,
      mini: (x, begin) => {
        const t = scene.miniToTime(v, x);
        const half = (v.t1 - v.t0) / 2;
        if (begin) this.miniOffset = t >= v.t0 && t <= v.t1 ? t - (v.t0 + half) : 0;
        this.put(t - this.miniOffset - half, t - this.miniOffset + half);
      },
      area: (from, to, done) => {
        const ends = [from, to].map((x) => Math.min(this.p.end, Math.max(0, scene.xToTime(v, Math.max(v.gutter, x))))).sort((a, b) => a - b);
        const area: [number, number] | null = Math.abs(to - from) > 2 ? [ends[0], ends[1]] : null;
        if (done) this.setArea(area);
        else v.area = area;
        this.redraw();
      },
      click: (x, y) => {
        const at = this.spanAt(x, y);
        if (at) this.page.selectSpan(at.span);
        else if (x >= v.gutter && y >= scene.TOP) this.page.clear();
      },
      double: (x, y) => {
        const at = this.spanAt(x, y);
        if (at) this.lookAt(at.span, 0.1);
      },
      hover: (x, y, e) => this.hover(x, y, e),
    };
  }
  private hover(x: number, y: number, e: PointerEvent | null): void {
    const at = e ? this.spanAt(x, y) : null;
    const item = e && !at && x >= this.v.gutter && y >= scene.TOP ? scene.itemAt(this.v, y)?.item : null;
    if (at) {
      const lines = spanLines(this.p, at.span);
      if (at.more) lines.push(`${f.count(at.more + 1)} spans in this pixel: zoom in to see them`);
      tooltip(e, lines);
    } else if (item?.kind === "track") tooltip(e, trackLines(this.v, item, scene.xToTime(this.v, x)));
    else tooltip(null);
    const span = at ? at.span : -1;
    if (span === this.v.hover) return;
    this.v.hover = span;
    this.redraw();
  }

  // ---- keys
  key(e: KeyboardEvent): boolean {
    if (e.defaultPrevented || (e.target as HTMLElement).closest(".tscroll")) return false;
    const half = (this.v.height - scene.TOP) / 2;
    const acts: Record<string, () => void> = {
      w: () => this.zoom(1 / 1.4),
      s: () => this.zoom(1.4),
      a: () => this.pan(-0.15),
      d: () => this.pan(0.15),
      f: () => this.fit(),
      m: () => this.toggleArea(),
      "0": () => this.look(0, this.p.end, 0),
      home: () => this.look(0, this.p.end, 0),
      arrowleft: () => this.move("before"),
      arrowright: () => this.move("behind"),
      arrowup: () => this.move("out"),
      arrowdown: () => this.move("in"),
      pageup: () => this.scrollBy(-half),
      pagedown: () => this.scrollBy(half),
    };
    if (e.key === "Escape" && this.v.area) {
      this.setArea(null);
      return true;
    }
    const act = acts[e.key.toLowerCase()];
    act?.();
    return Boolean(act);
  }
  private scrollBy(dy: number): void {
    this.v.scroll += dy;
    this.redraw();
  }
  private move(where: Parameters<typeof beside>[2]): void {
    const next = beside(this.p, this.lanes, where, this.page.selection.span, this.v.t0, this.v.t1);
    if (next >= 0) this.page.selectSpan(next);
  }
}

export const timeline: View = {
  id: "timeline",
  title: "Timeline",
  keys: [
    ["W S", "zoom in and out (also Ctrl+wheel, pinch)"],
    ["A D", "pan (also drag, Shift+wheel)"],
    ["← →", "span before or behind on the same row"],
    ["↑ ↓", "span around, span inside"],
    ["F", "fit the selection"],
    ["0 Home", "the whole profile"],
    ["M", "statistics of the time in sight (Shift+drag: of a part)"],
    ["PageUp PageDown", "scroll the lanes"],
    ["Enter Shift+Enter", "next and previous match, in the search field"],
  ],
  shown: () => true,
  open(root, page) {
    if (page.profile.spans.n) return new Timeline(root, page);
    root.append(empty("This profile has no spans", "It holds totals only. Record one with a timeline:", "sonde profile MODEL -o report.html"));
    return {};
  },
};
