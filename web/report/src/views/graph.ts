// SPDX-License-Identifier: Apache-2.0
// The graph of one binding, coloured by time: every step a box, the tensors between them as lines with their shapes, the
// model's own nodes behind each fused step. Large graphs open as groups.
import { onTheme, theme } from "../colors";
import { empty, perFrame, sharp, tooltip } from "../dom";
import type { Layout } from "../layout";
import { CanvasSurface } from "../picture";
import type { Profile } from "../profile";
import type { Page } from "../state";
import type { Opened, View } from "../view";
import { type Area, Camera } from "./graph_camera";
import { drawGraph, type Mode, reachOf, type Scene } from "./graph_draw";
import { type Group, groupsAround, groupsOf, groupTree, openAtFirst } from "./graph_groups";
import { Layouter } from "./graph_layout";
import { MiniMap } from "./graph_map";
import { type Model, modelOf } from "./graph_model";
import { Search } from "./graph_search";
import { Strip } from "./graph_strip";
import { bodiesOf, mainTable, type TableInfo, tablesOf } from "./graph_tables";
import { Tools } from "./graph_tools";
import { sentence, tipOf } from "./graph_words";

const MODES: readonly Mode[] = ["time", "type", "roofline"];
const LEGIBLE = 0.85; // zoom below which the whole graph says too little to begin with
const CLOSE = 1.8; // zoom of a selection that is fitted

export class GraphView implements Opened {
  readonly page: Page;
  readonly p: Profile;
  table: TableInfo;
  mode: Mode;
  originals: boolean;
  folded: boolean;
  scene: Scene | null = null;
  readonly search: HTMLInputElement;
  private tree: Group;
  private open = new Set<number>();
  private cursor = -1;
  private readonly camera: Camera;
  private readonly map: MiniMap;
  private readonly strip: Strip;
  private readonly tools: Tools;
  private readonly finder: Search;
  private readonly layouter = new Layouter();
  private readonly draw: () => void;
  private readonly unwatch: () => void;
  private readonly watch = new ResizeObserver(() => this.stageResized()); // legend and strip take some of the room
  private placed = false; // the camera has been put somewhere
  private fresh = false; // a selection whose details may open beside the graph and make it smaller
  private closed = false;

  constructor(root: HTMLElement, page: Page, table: TableInfo) {
    this.page = page;
    this.p = page.profile;
    this.table = table;
    this.mode = MODES.find((m) => m === page.params.get("by")) ?? "time";
    this.originals = page.params.get("nodes") === "1";
    this.folded = page.params.get("folded") === "1";
    this.tree = this.grow();
    this.draw = perFrame(() => this.paint());
    this.finder = new Search(this);
    this.search = this.finder.input;
    this.tools = new Tools(this, this.finder);
    this.camera = new Camera(this.tools.canvas, {
      changed: () => {
        if (this.placed) this.page.set("at", this.camera.text());
        this.draw();
      },
      tap: (x, y) => this.choose(this.boxAt(x, y)),
      twice: (x, y) => this.openGroup(this.boxAt(x, y)),
      hover: (x, y, event) => tooltip(event, event ? tipOf(this.p, this.scene?.model.boxes[this.boxAt(x, y)]) : []),
    });
    this.map = new MiniMap(this.camera);
    this.strip = new Strip(page, (info) => this.setTable(info));
    root.className = "full";
    this.tools.mount(root, this.map.canvas, this.strip.element);
    this.unwatch = onTheme(() => {
      if (this.scene) this.scene.theme = theme();
      this.tools.legend();
      this.strip.show();
      this.draw();
    });
    this.size();
    this.readOpen();
    this.lay();
    this.strip.show();
    this.watch.observe(this.tools.stage);
  }

  // ---------------------------------------------------------------- what is drawn
  /** Groups of the steps that are drawn: folded ones would make the others look like many. */
  private grow(): Group {
    return groupTree(this.p, this.table.steps.filter((i) => this.folded || !this.p.steps[i].folded));
  }
  private readOpen(): void {
    const said = this.page.params.get("open");
    const some = new Set((said ?? "").split(".").filter(Boolean).map(Number));
    const ids = groupsOf(this.tree).map((g) => g.id);
    this.open = said === undefined ? openAtFirst(this.tree) : new Set(ids.filter((id) => said === "all" || some.has(id)));
  }
  private writeOpen(said?: string): void {
    this.page.set("open", said ?? ([...this.open].join(".") || "none"));
  }
  get groups(): number {
    return groupsOf(this.tree).length;
  }

  /** Computes the drawing anew; `then` runs when it is there. */
  lay(then?: (scene: Scene) => void): void {
    const model = modelOf(this.p, this.table, this.tree, { folded: this.folded, originals: this.originals, open: this.open });
    this.tools.busy(model.boxes.length);
    this.layouter.lay(model, (layout) => {
      if (this.closed) return;
      this.tools.busy(0);
      this.scene = this.sceneOf(model, layout);
      this.cursor = -1;
      this.mark();
      this.tools.legend();
      if (!this.placed) this.begin(this.scene);
      then?.(this.scene);
      this.draw();
    });
  }
  private sceneOf(model: Model, layout: Layout): Scene {
    return {
      p: this.p, model, layout, reach: reachOf(layout), mode: this.mode, theme: theme(),
      chosen: new Set(), hits: new Set(), cursor: -1,
    };
  }

  /** Where the address says; else all; where that is too small to read the selection, or what takes most time. */
  private begin(scene: Scene): void {
    const told = this.camera.read(this.page.params.get("at"));
    if (!told) this.camera.show(this.whole());
    if (!told && this.camera.zoom < LEGIBLE) {
      this.camera.zoom = LEGIBLE;
      const { boxes } = scene.model;
      const hottest = boxes.reduce((best, box, i) => (box.share > (boxes[best]?.share ?? 0) ? i : best), 0);
      const at = [...scene.chosen][0] ?? hottest;
      const { layout } = scene;
      // Near an edge of the drawing the edge stands at that of the screen: no room for nothing.
      const inside = (v: number, size: number, screen: number): number =>
        size <= screen ? size / 2 : Math.max(screen / 2, Math.min(size - screen / 2, v));
      this.camera.centre(
        inside(layout.x[at] ?? 0, layout.width, this.camera.width / LEGIBLE),
        inside(layout.y[at] ?? 0, layout.height, this.camera.height / LEGIBLE),
      );
    }
    this.placed = true; // from now on the address follows
  }

  private whole(): Area {
    const { layout } = this.scene as Scene;
    return { x0: 0, y0: 0, x1: layout.width, y1: layout.height };
  }
  private areaOf(boxes: Iterable<number>): Area | null {
    const { layout, model } = this.scene as Scene;
    const area = { x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity };
    for (const i of boxes) {
      const { w, h } = model.boxes[i];
      area.x0 = Math.min(area.x0, layout.x[i] - w / 2 - 40);
      area.x1 = Math.max(area.x1, layout.x[i] + w / 2 + 40);
      area.y0 = Math.min(area.y0, layout.y[i] - h / 2 - 60);
      area.y1 = Math.max(area.y1, layout.y[i] + h / 2 + 60);
    }
    return area.x0 < area.x1 ? area : null;
  }
  showAll(): void {
    if (this.scene) this.camera.show(this.whole());
  }
  fit(): void {
    if (!this.scene) return;
    const area = this.areaOf(this.cursor >= 0 ? [this.cursor] : this.scene.chosen);
    if (area) this.camera.show(area, CLOSE);
    else this.showAll();
  }

  private paint(): void {
    const { scene, camera } = this;
    if (!scene || this.closed) return;
    const c = sharp(this.tools.canvas, camera.width, camera.height);
    c.fillStyle = scene.theme.paper;
    c.fillRect(0, 0, camera.width, camera.height);
    const scale = this.tools.canvas.width / camera.width;
    c.setTransform(scale * camera.zoom, 0, 0, scale * camera.zoom, -camera.x * camera.zoom * scale, -camera.y * camera.zoom * scale);
    drawGraph(new CanvasSurface(c), scene, camera.area(), camera.zoom);
    this.map.draw(scene);
  }
  picture(): { width: number; height: number; draw(s: Parameters<typeof drawGraph>[0]): void } | null {
    const { scene } = this;
    if (!scene) return null;
    return { width: scene.layout.width, height: scene.layout.height, draw: (s) => drawGraph(s, scene, this.whole(), 1) };
  }

  // ---------------------------------------------------------------- options
  setTable(info: TableInfo): void {
    this.table = info;
    this.page.set("table", String(info.table));
    this.page.set("open", null);
    this.page.set("at", null);
    this.tree = this.grow();
    this.readOpen();
    this.placed = false;
    this.finder.forget();
    this.tools.refresh();
    this.lay();
  }
  setMode(mode: Mode): void {
    this.mode = mode;
    this.page.set("by", mode === "time" ? null : mode);
    if (this.scene) this.scene.mode = mode;
    this.tools.legend();
    this.draw();
  }
  setOriginals(on: boolean): void {
    this.originals = on;
    this.page.set("nodes", on ? "1" : null);
    this.lay(() => this.see());
  }
  setFolded(on: boolean): void {
    this.folded = on;
    this.page.set("folded", on ? "1" : null);
    this.page.set("open", null); // other groups
    this.tree = this.grow();
    this.readOpen();
    this.lay(() => this.see());
  }
  openAll(on: boolean): void {
    this.open = new Set(on ? groupsOf(this.tree).map((g) => g.id) : []);
    this.writeOpen(on ? "all" : "none");
    this.page.set("at", null);
    this.placed = false;
    this.lay();
  }

  // ---------------------------------------------------------------- groups
  private openGroup(box: number): void {
    const chosen = this.scene?.model.boxes[box];
    const group = chosen?.group;
    if (!group) {
      const [body] = chosen && chosen.step >= 0 ? bodiesOf(this.p, chosen.step) : [];
      return body && this.setTable(body);
    }
    this.open.add(group.id);
    this.writeOpen();
    this.lay((scene) => {
      const boxes = [...new Set(group.steps.map((i) => scene.model.boxOf[i]))].filter((i) => i >= 0);
      const area = this.areaOf(boxes);
      if (area) this.camera.show(area);
      if (this.camera.zoom < LEGIBLE) this.goTo(boxes[0]);
      this.moveTo(boxes[0] ?? -1);
    });
  }
  /** Closes the group around the box the keys are at. */
  private closeGroup(): void {
    const box = this.scene?.model.boxes[this.cursor];
    const around = box?.group ? box.group.parent : box && box.step >= 0 ? groupsAround(this.tree, box.step)[0] : null;
    if (!around || around === this.tree) return;
    for (const g of [around, ...groupsOf(around)]) this.open.delete(g.id);
    this.writeOpen();
    this.lay((scene) => this.moveTo(scene.model.boxOf[around.steps[0]]));
  }
  /** Brings a step into sight, out of closed groups. */
  reveal(step: number): void {
    const go = (scene: Scene): void => {
      const box = scene.model.boxOf[step];
      if (box < 0) return;
      this.choose(box);
      this.goTo(box);
    };
    if (this.scene && this.scene.model.boxes[this.scene.model.boxOf[step]]?.kind === "step") return go(this.scene);
    for (const g of groupsAround(this.tree, step)) this.open.add(g.id);
    this.writeOpen();
    this.lay(go);
  }

  // ---------------------------------------------------------------- selection
  private boxAt(x: number, y: number): number {
    const { scene } = this;
    if (!scene) return -1;
    const { layout, model } = scene;
    return model.boxes.findIndex((b, i) => Math.abs(x - layout.x[i]) <= b.w / 2 && Math.abs(y - layout.y[i]) <= b.h / 2);
  }
  private choose(box: number): void {
    const chosen = this.scene?.model.boxes[box];
    this.cursor = chosen ? box : -1;
    if (!chosen) this.page.clear();
    else if (chosen.step >= 0) this.page.selectStep(chosen.step);
    this.mark();
    this.draw();
  }
  private goTo(box: number): void {
    const { scene, camera } = this;
    if (!scene || !(box >= 0)) return;
    camera.zoom = Math.max(camera.zoom, LEGIBLE);
    camera.centre(scene.layout.x[box], scene.layout.y[box]);
  }
  private moveTo(box: number): void {
    if (!this.scene?.model.boxes[box]) return;
    this.choose(box);
    this.see();
  }

  /** The selection and the hits as boxes, for the drawing and in words. */
  mark(): void {
    const { scene } = this;
    if (!scene) return;
    const { boxOf } = scene.model;
    const boxes = (steps: Iterable<number>): Set<number> => new Set([...steps].map((i) => boxOf[i]).filter((b) => b >= 0));
    scene.chosen = boxes([...this.page.selection.steps].filter((i) => this.p.steps[i]?.table === this.table.table));
    scene.hits = boxes(this.finder.hits);
    if (this.cursor < 0 && scene.chosen.size) this.cursor = [...scene.chosen][0];
    scene.cursor = this.cursor;
    this.tools.describe(scene.model.boxes[this.cursor] ? sentence(scene.model, this.cursor) : "");
    this.draw();
  }
  /** Moves the picture if what is chosen is not in it. */
  private see(): void {
    const { scene, camera } = this;
    if (!scene) return;
    const boxes = this.cursor >= 0 ? [this.cursor] : [...scene.chosen];
    const area = camera.area();
    const inside = (i: number): boolean =>
      scene.layout.x[i] >= area.x0 && scene.layout.x[i] <= area.x1 && scene.layout.y[i] >= area.y0 && scene.layout.y[i] <= area.y1;
    if (boxes.length && !boxes.some(inside)) camera.centre(scene.layout.x[boxes[0]], scene.layout.y[boxes[0]]);
  }
  selected(): void {
    const { steps } = this.page.selection;
    const at = this.scene?.model.boxes[this.cursor];
    if (!at || at.step < 0 || !steps.has(at.step)) this.cursor = -1;
    const elsewhere = [...steps][0];
    const known = [...steps].some((i) => this.p.steps[i].table === this.table.table);
    const info = known || elsewhere === undefined ? null : tablesOf(this.p).find((t) => t.table === this.p.steps[elsewhere].table);
    this.strip.show();
    if (info) return this.setTable(info);
    this.fresh = true;
    this.mark();
    this.see();
  }

  // ---------------------------------------------------------------- frame
  private size(): void {
    this.camera.width = Math.max(1, this.tools.stage.clientWidth);
    this.camera.height = Math.max(1, this.tools.stage.clientHeight);
  }
  private stageResized(): void {
    this.size();
    this.draw();
  }
  resized(): void {
    this.size();
    this.strip.show();
    if (this.fresh) this.see();
    this.fresh = false;
    this.draw();
  }
  key(e: KeyboardEvent): boolean {
    const onStage = e.target === this.tools.canvas || e.target === document.body || (e.target as HTMLElement).id === "view";
    return onStage && this.tools.key(e, this.camera, { walk: (way) => this.walk(way), enter: () => this.openGroup(this.cursor), leave: () => this.closeGroup() });
  }
  private walk(way: "up" | "down" | "left" | "right"): void {
    const { scene } = this;
    if (!scene?.model.boxes.length) return;
    const { model, layout } = scene;
    if (this.cursor < 0) return this.moveTo(0);
    if (way === "up" || way === "down") {
      const k = (way === "up" ? model.boxIn : model.boxOut)[this.cursor][0];
      if (k !== undefined) this.moveTo(way === "up" ? model.links[k].from : model.links[k].to);
      return;
    }
    const sign = way === "right" ? 1 : -1;
    let best = -1;
    for (let i = 0; i < model.boxes.length; i++) {
      const dx = (layout.x[i] - layout.x[this.cursor]) * sign;
      if (Math.abs(layout.y[i] - layout.y[this.cursor]) > 1 || dx <= 0) continue;
      if (best < 0 || dx < (layout.x[best] - layout.x[this.cursor]) * sign) best = i;
    }
    this.moveTo(best);
  }
  close(): void {
    this.closed = true;
    this.watch.disconnect();
    this.unwatch();
    this.layouter.close();
  }
}

function openGraph(root: HTMLElement, page: Page): Opened {
  const tables = tablesOf(page.profile);
  const wanted = tables.find((t) => String(t.table) === page.params.get("table"));
  const [first] = page.selection.steps;
  const table = wanted ?? tables.find((t) => t.table === page.profile.steps[first]?.table) ?? mainTable(tables);
  if (table) return new GraphView(root, page, table);
  root.append(
    empty("No graph", "This profile names no steps of a model. sonde records them with every run; profiles of other programs carry none.", "sonde profile MODEL -o report.html"),
  );
  return {};
}

export const graph: View = {
  id: "graph",
  title: "Graph",
  keys: [
    ["W A S D", "move the picture"],
    ["+ −", "zoom"],
    ["F", "fit the selection"],
    ["0", "the whole graph"],
    ["↑ ↓", "to the first producer or consumer"],
    ["← →", "to the neighbour in the same rank"],
    ["Enter", "open a group, or the body of a step; in the search: next hit"],
    ["Backspace", "close the group around the selection"],
  ],
  shown: () => true,
  open: openGraph,
};
