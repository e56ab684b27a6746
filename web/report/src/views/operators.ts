// SPDX-License-Identifier: Apache-2.0
// The timing table by operator type, node, shape, kernel or arithmetic. It is in order of what rows take as a rule; their
// means add up to the mean latency of a run.
import { onTheme, theme } from "../colors";
import { button, clear, empty, h } from "../dom";
import * as f from "../format";
import { ROW_KEYS, type Profile, type RowKey } from "../profile";
import type { Page } from "../state";
import { Table } from "../table";
import type { Opened, View } from "../view";
import { columnsOf, directNote, type Line, linesOf, words } from "./operators_columns";

type By = RowKey | "precision";
const BY: [By, string][] = [
  ["op", "Type"],
  ["node", "Node"],
  ["shape", "Shape"],
  ["kernel", "Kernel"],
  ["precision", "Precision"],
];

class Operators {
  readonly opened: Opened;
  private readonly page: Page;
  private readonly p: Profile;
  private readonly place = h("div");
  private readonly foot = h("p", { class: "sums", role: "status" });
  private readonly groups = h("span", { class: "segments", role: "group", "aria-label": "Group by" });
  private by: By;
  private table!: Table<Line>;
  private chosen = new Set<number>(); // rows that hold a selected step
  private look = { dark: theme().dark };

  constructor(root: HTMLElement, page: Page) {
    this.page = page;
    this.p = page.profile;
    const asked = page.params.get("by");
    this.by = BY.some(([by]) => by === asked) ? (asked as By) : "op";
    root.append(h("h2", { class: "visually-hidden" }, "Operators"), this.place, this.foot);
    this.make();
    const unwatch = onTheme(() => {
      this.look.dark = theme().dark;
      this.table.refresh();
    });
    this.opened = { close: unwatch, selected: () => this.selected() };
    this.search();
  }

  private search(): void {
    this.opened.search = this.table.search;
  }

  /** The table of the grouping; columns without anything in them are left out. */
  private make(): void {
    const { page, p } = this;
    const lines = linesOf(p, this.by);
    const columns = columnsOf(p, this.by, lines, this.look);
    const asked = page.params.get("sort") ?? "-time";
    const column = asked.replace(/^-/, "");
    this.mark();
    this.table = new Table<Line>({
      name: `operators by ${this.by === "op" ? "type" : this.by}`,
      columns,
      rows: lines,
      sort: columns.some((c) => c.id === column) ? { column, down: asked.startsWith("-") } : { column: "time", down: true },
      words,
      chosen: (line) => this.by !== "precision" && this.chosen.has(line.index),
      choose: (line) => {
        if (this.by !== "precision") page.selectRow(this.by, line.index);
      },
      act: (line) => this.act(line),
      sorted: (id, down) => page.set("sort", `${down ? "-" : ""}${id}`),
      filter: page.params.get("filter") ?? "",
      filtered: (text) => {
        page.set("filter", text || null);
        queueMicrotask(() => this.sums()); // the table filters after this call
      },
      empty: p.summary.iterations
        ? empty("No operator was recorded", "Profiles with operators come from level 1 on:", "sonde profile MODEL -o report.html")
        : empty("No run was measured", "Times per run need measured ones:", "sonde profile MODEL -n 100 -o report.html"),
    });
    clear(this.groups);
    for (const [by, title] of BY) this.groups.append(button(title, () => this.group(by, this.table.search.value), { "aria-pressed": String(by === this.by) }));
    this.table.bar.prepend(this.groups);
    clear(this.place);
    this.place.append(this.table.element);
    this.sums();
    requestAnimationFrame(() => this.table.reveal()); // only now it has a height
  }

  private group(by: By, filter: string): void {
    const focused = this.groups.contains(document.activeElement);
    this.by = by;
    this.page.set("by", by === "op" ? null : by);
    this.page.set("filter", filter || null);
    this.make();
    this.search();
    if (focused) this.groups.querySelector<HTMLElement>("[aria-pressed='true']")?.focus();
  }

  /** Enter: where these operators stand in time; of a precision, its nodes. */
  private act(line: Line): void {
    if (this.by !== "precision") {
      this.page.selectRow(this.by, line.index);
      this.page.go("timeline");
    } else if (!line.row.bracket) this.group("node", `arithmetic=${line.row.arithmetic || "none"};`);
  }

  private mark(): void {
    const { selection } = this.page;
    this.chosen = new Set();
    if (this.by === "precision") return;
    if (selection.kind === this.by) this.chosen.add(selection.index);
    const k = ROW_KEYS.indexOf(this.by);
    for (const step of selection.steps) this.chosen.add(this.p.steps[step].rows[k]);
    this.chosen.delete(-1);
  }
  private selected(): void {
    this.mark();
    this.table.reveal();
  }

  private sums(): void {
    const { wall, iterations } = this.p.summary;
    const sum = (list: Line[]): number => list.reduce((total, line) => total + line.row.usual_ns, 0);
    const shown = this.table.rows;
    const lines = linesOf(this.p, this.by);
    const all = sum(lines);
    clear(this.foot);
    if (!iterations) return;
    const means = lines.reduce((total, line) => total + line.row.mean_ns, 0);
    const rest = wall.mean - means;
    if (shown.length < lines.length) {
      this.foot.append(h("span", null, "Shown: ", h("b", null, f.time(sum(shown))), ` per run, ${f.percent(all > 0 ? sum(shown) / all : 0)}`));
    }
    this.foot.append(
      h("span", null, "All rows: ", h("b", null, f.time(all)), " per run"),
      h("span", null, "Means of all rows: ", h("b", null, f.time(means))),
      h("span", null, "Mean latency: ", h("b", null, f.time(wall.mean))),
      Math.abs(rest) > 0.001 * wall.mean ? h("span", null, `Outside of operators: ${f.time(rest)}`) : "",
      h("span", null, directNote(lines.map(({ row }) => row))),
    );
  }
}

export const operators: View = {
  id: "operators",
  title: "Operators",
  keys: [
    ["↑ ↓", "choose a row"],
    ["Enter", "show it in the timeline; of a precision, its nodes"],
  ],
  shown: () => true,
  open: (root, page) => new Operators(root, page).opened,
};
