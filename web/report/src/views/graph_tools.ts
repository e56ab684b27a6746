// SPDX-License-Identifier: Apache-2.0
// What stands around the graph: buttons, legend, the canvas itself, the words for those who cannot see it, and keys.
import { heat, opColor, theme } from "../colors";
import { append, button, clear, h } from "../dom";
import * as f from "../format";
import type { GraphView } from "./graph";
import type { Camera } from "./graph_camera";
import type { Mode } from "./graph_draw";
import { drawingButtons } from "./graph_picture";
import type { Search } from "./graph_search";
import { stepCount, stepLabel, tableLabel, tablesOf } from "./graph_tables";

const MODES: [Mode, string, string][] = [
  ["time", "Time", "Darker is a larger share of a run"],
  ["type", "Type", "One colour per type of operator"],
  ["roofline", "Roofline", "Darker is nearer to what the machine can do"],
];
const STEP = 60; // pixels a key moves

export interface Moves {
  walk(way: "up" | "down" | "left" | "right"): void;
  enter(): void;
  leave(): void;
}

export class Tools {
  readonly stage = h("div", { class: "stage graph-stage" });
  readonly canvas: HTMLCanvasElement;
  private readonly bar = h("div", { class: "toolbar" });
  private readonly colours = h("div", { class: "graph-legend" });
  private readonly note = h("p", { class: "faint" });
  private readonly state = h("p", { class: "graph-busy", role: "status" });
  private readonly words = h("p", { class: "visually-hidden", "aria-live": "polite" });
  private readonly view: GraphView;
  private readonly finder: Search;

  constructor(view: GraphView, finder: Search) {
    this.view = view;
    this.finder = finder;
    this.canvas = h("canvas", { tabindex: 0, role: "application" });
    this.state.hidden = true;
  }

  mount(root: HTMLElement, map: HTMLElement, strip: HTMLElement): void {
    append(this.stage, [this.canvas, map, this.state, this.words]);
    append(root, [this.bar, this.stage, h("div", { class: "graph-foot" }, this.colours, this.note), strip]);
    this.refresh();
  }

  /** The bar anew: another table may have groups or folded steps where this one has none. */
  refresh(): void {
    const { view } = this;
    clear(this.bar);
    append(this.bar, [
      this.whichTable(),
      this.outOfBody(),
      view.search,
      this.finder.found,
      this.whichMode(),
      this.check("Original nodes", view.originals, "Draw the model's nodes inside each fused step", (on) => view.setOriginals(on)),
      view.table.steps.some((i) => view.p.steps[i].folded)
        ? this.check("Folded", view.folded, "Steps that were computed when the model was loaded", (on) => view.setFolded(on))
        : null,
      view.groups
        ? h("span", { class: "buttons" }, button("Expand all", () => view.openAll(true)), button("Collapse all", () => view.openAll(false)))
        : null,
      h("span", { class: "buttons" }, button("Fit", () => view.fit(), { title: "Fit the selection (F)" }), button("All", () => view.showAll(), { title: "The whole graph (0)" })),
      h("span", { class: "space" }),
      drawingButtons("graph", () => view.picture()),
    ]);
    this.canvas.setAttribute(
      "aria-label",
      `Graph of ${stepCount(view.table.ran)}. Arrow keys go along its edges, Enter opens a group, F fits, plus and minus zoom.`,
    );
    const named = view.table.steps.some((i) => [...view.p.steps[i].inputs, ...view.p.steps[i].outputs].some((t) => t.name || t.value));
    this.note.hidden = named || view.table.steps.length < 2;
    this.note.textContent = this.note.hidden ? "" : "This profile names no tensors, so there are no edges: the steps stand in the order they first ran.";
  }

  private whichTable(): HTMLElement | null {
    const { view } = this;
    const tables = tablesOf(view.p);
    if (tables.length < 2) return null;
    const select = h(
      "select",
      {
        "aria-label": "Binding",
        class: "graph-table",
        onchange: () => {
          const info = tables[select.selectedIndex];
          if (info) view.setTable(info);
        },
      },
      tables.map((t) => h("option", { selected: t === view.table }, tableLabel(view.p, t))),
    );
    return select;
  }
  /** Back to the step whose body is shown. */
  private outOfBody(): HTMLElement | null {
    const { view } = this;
    const { owner } = view.table;
    const step = view.p.steps[owner];
    const around = step && tablesOf(view.p).find((t) => t.table === step.table);
    if (!around) return null;
    const out = (): void => {
      view.setTable(around);
      view.reveal(owner);
    };
    return button(`↑ ${stepLabel(step, 30)}`, out, { title: "To the step whose body this is" });
  }
  private whichMode(): HTMLElement {
    const { view } = this;
    const buttons = MODES.map(([mode, label, title]) =>
      button(
        label,
        () => {
          view.setMode(mode);
          buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(MODES[i][0] === mode)));
        },
        { title, "aria-pressed": String(view.mode === mode) },
      ),
    );
    return h("span", { class: "segments", role: "group", "aria-label": "Colour by" }, buttons);
  }
  private check(label: string, on: boolean, title: string, changed: (on: boolean) => void): HTMLElement {
    const box = h("input", { type: "checkbox", checked: on, onchange: () => changed(box.checked) });
    return h("label", { class: "graph-check", title }, box, label);
  }

  busy(boxes: number): void {
    this.state.hidden = !boxes;
    this.state.textContent = boxes ? `Laying out ${f.count(boxes)} boxes…` : "";
  }
  describe(text: string): void {
    if (this.words.textContent !== text) this.words.textContent = text;
  }

  legend(): void {
    const { view } = this;
    const colors = theme();
    clear(this.colours);
    const swatch = (color: string, label: string): HTMLElement => {
      const mark = h("span", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = color;
      return h("span", null, mark, f.shorten(f.plain(label), 24));
    };
    if (view.mode === "type") {
      const types = new Set(view.table.steps.map((i) => view.p.steps[i].op));
      const first = view.p.rows.op.filter((row) => !row.bracket && types.has(row.op)).map((row) => row.op);
      const ops = [...new Set(first)];
      append(this.colours, ops.slice(0, 8).map((op) => swatch(opColor(view.p, op, colors.dark), op)));
      if (ops.length > 8) this.colours.append(swatch(colors.grey, `${ops.length - 8} more types`));
      return;
    }
    const most = view.mode === "time" ? (view.scene?.model.most ?? 0) : 1;
    const ramp = h("span", { class: "graph-ramp", "aria-hidden": "true" });
    for (let k = 0; k <= 16; k++) {
      const piece = h("span");
      piece.style.background = heat(k / 16, colors.dark);
      ramp.append(piece);
    }
    append(this.colours, [
      h("span", null, view.mode === "time" ? "share of a run" : "share of the roofline"),
      h("span", null, "0"),
      ramp,
      h("span", null, f.percent(most)),
    ]);
    if (view.mode === "roofline") this.colours.append(swatch(colors.panel, "not known"));
  }

  /** A key on the canvas; true: used. */
  key(e: KeyboardEvent, camera: Camera, moves: Moves): boolean {
    const act: Record<string, () => void> = {
      ArrowUp: () => moves.walk("up"),
      ArrowDown: () => moves.walk("down"),
      ArrowLeft: () => moves.walk("left"),
      ArrowRight: () => moves.walk("right"),
      Enter: () => moves.enter(),
      Backspace: () => moves.leave(),
      w: () => camera.pan(0, -STEP),
      s: () => camera.pan(0, STEP),
      a: () => camera.pan(-STEP, 0),
      d: () => camera.pan(STEP, 0),
      "+": () => camera.scale(1.25),
      "=": () => camera.scale(1.25),
      "-": () => camera.scale(0.8),
      f: () => this.view.fit(),
      "0": () => this.view.showAll(),
    };
    const what = act[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    what?.();
    return Boolean(what);
  }
}
