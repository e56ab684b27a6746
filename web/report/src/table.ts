// SPDX-License-Identifier: Apache-2.0
// A table that sorts, filters and saves itself as CSV. Only the rows in sight are elements, so 100,000 rows scroll as
// well as ten. Keys: up and down choose, Home and End jump, Enter acts.
import { append, button, clear, h, perFrame } from "./dom";
import { plain } from "./format";
import { endKept } from "./names";
import { save } from "./picture";

export interface Column<T> {
  id: string;
  title: string;
  hint?: string; // what the figures mean
  number?: boolean; // right-aligned, sorts downwards first
  unit?: string; // of the plain number, in the head of the CSV file: "ns"
  text(row: T): string; // as shown
  value?(row: T): number | string | null; // to sort by, and in CSV: the plain number; else the text
  bar?(row: T): number; // 0…1: a bar behind the figure
  color?(row: T): string | null; // a mark before the text
  name?(row: T): string; // shown in place of a text of nodes' names; it keeps its end where the column is too narrow
  cell?(row: T): string; // a class
  width?: string; // of the grid: "minmax(8rem, 2fr)"; numbers: "7rem"
}

export interface TableOptions<T> {
  name: string; // of the CSV file, and for screen readers
  columns: Column<T>[];
  rows: T[];
  first?: T; // stands above all rows, whatever the order and the filter
  sort?: { column: string; down: boolean };
  words(row: T): string; // what the filter looks at
  choose?(row: T): void;
  act?(row: T): void; // Enter or double click
  chosen?(row: T): boolean;
  sorted?(column: string, down: boolean): void;
  filter?: string;
  filtered?(text: string): void;
  empty?: HTMLElement;
  height?: string; // CSS; default: as high as its rows, at most 70vh
}

const ROW = 30; // pixels, as in style.css
const PRINTED = 500; // rows on paper

export class Table<T> {
  readonly element: HTMLElement;
  readonly search: HTMLInputElement;
  readonly bar: HTMLElement; // filter and buttons: others may add theirs
  private readonly body: HTMLElement;
  private readonly scroll: HTMLElement;
  private readonly head: HTMLElement;
  private readonly found: HTMLElement;
  private readonly options: TableOptions<T>;
  private shown: T[] = [];
  private cursor = -1;
  private column: string;
  private down: boolean;
  private readonly draw: () => void;

  constructor(options: TableOptions<T>) {
    this.options = options;
    this.column = options.sort?.column ?? "";
    this.down = options.sort?.down ?? true;
    this.draw = perFrame(() => this.drawRows());
    this.search = h("input", {
      type: "search",
      placeholder: "Filter",
      "aria-label": `Filter ${options.name}`,
      value: options.filter ?? "",
      oninput: () => {
        options.filtered?.(this.search.value);
        this.refresh();
      },
    });
    this.search.value = options.filter ?? "";
    this.found = h("span", { class: "faint", role: "status" });
    this.bar = h("div", { class: "bar" }, this.search, this.found, h("span", { class: "space" }));
    this.bar.append(button("CSV", () => this.saveCsv(), { title: "Save this table as CSV" }));
    this.head = h("div", { class: "thead", role: "row" });
    this.body = h("div", { class: "tbody", role: "rowgroup" });
    this.scroll = h(
      "div",
      {
        class: "tscroll",
        role: "grid",
        tabindex: 0,
        "aria-label": options.name,
        onscroll: () => this.draw(),
        onkeydown: (e: KeyboardEvent) => this.key(e),
      },
      h("div", { role: "rowgroup", class: "thead-group" }, this.head),
      this.body,
    );
    if (options.height) this.scroll.style.maxHeight = options.height;
    const template = options.columns.map((c) => c.width ?? (c.number ? "7.2rem" : "minmax(9rem, 2fr)")).join(" ");
    this.scroll.style.setProperty("--columns", template);
    this.element = h("div", { class: "table" }, this.bar, this.scroll);
    const print = matchMedia("print");
    const printing = (): void => {
      if (this.element.isConnected) this.drawRows();
      else print.removeEventListener("change", printing);
    };
    print.addEventListener("change", printing);
    this.refresh();
  }

  set rows(rows: T[]) {
    this.options.rows = rows;
    this.refresh();
  }
  get rows(): T[] {
    return this.shown;
  }

  /** After a change of the rows or of what is chosen. */
  refresh(): void {
    const { options } = this;
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = options.rows.filter((row) => {
      const text = words.length ? options.words(row).toLowerCase() : "";
      return words.every((word) => text.includes(word));
    });
    const column = options.columns.find((c) => c.id === this.column);
    if (column) {
      const value = column.value ?? column.text;
      const sign = this.down ? -1 : 1;
      this.shown.sort((a, b) => {
        const x = value(a);
        const y = value(b);
        if (x === y) return 0;
        if (x === null || y === null) return x === null ? 1 : -1; // nothing comes last either way
        return (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y))) * sign;
      });
    }
    const all = options.rows.length;
    const rows = all === 1 ? "row" : "rows";
    this.found.textContent = this.shown.length === all ? `${all} ${rows}` : `${this.shown.length} of ${all} ${rows}`;
    if (options.first !== undefined) this.shown.unshift(options.first);
    if (this.cursor >= this.shown.length) this.cursor = this.shown.length - 1;
    this.drawHead();
    this.drawRows();
  }

  /** Brings the first chosen row into sight. */
  reveal(): void {
    const at = this.options.chosen ? this.shown.findIndex((row) => this.options.chosen?.(row)) : -1;
    if (at >= 0) {
      this.cursor = at;
      this.see(at);
    }
    this.draw();
  }
  private see(at: number): void {
    const top = at * ROW;
    const room = this.scroll.clientHeight - ROW;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + ROW > this.scroll.scrollTop + room) this.scroll.scrollTop = top + ROW - room;
  }

  private drawHead(): void {
    const active = document.activeElement;
    const focused = active instanceof HTMLElement && this.head.contains(active) ? active.dataset["column"] : undefined;
    clear(this.head);
    for (const column of this.options.columns) {
      const sorted = column.id === this.column;
      const press = (): void => {
        this.down = sorted ? !this.down : Boolean(column.number);
        this.column = column.id;
        this.options.sorted?.(this.column, this.down);
        this.refresh();
      };
      const name = h(
        "button",
        { type: "button", onclick: press, title: column.hint ?? `Sort by ${column.title}`, "data-column": column.id },
        column.title,
        h("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (this.down ? "▼" : "▲") : ""),
      );
      const cell = h("div", { role: "columnheader", class: column.number ? "num" : "" }, name);
      if (sorted) cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      this.head.append(cell);
      if (column.id === focused) name.focus();
    }
  }

  private drawRows(): void {
    const paper = matchMedia("print").matches; // nothing scrolls there
    const n = paper ? Math.min(PRINTED, this.shown.length) : this.shown.length;
    this.body.style.height = `${n * ROW}px`;
    this.scroll.setAttribute("aria-rowcount", String(n + 1));
    clear(this.body);
    if (!n) {
      this.body.style.height = "auto";
      this.body.append(
        this.options.rows.length || !this.options.empty
          ? h("p", { class: "faint pad" }, "Nothing matches the filter.")
          : this.options.empty,
      );
      return;
    }
    const first = paper ? 0 : Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 8);
    const room = this.scroll.clientHeight || 700;
    const last = paper ? n : Math.min(n, Math.ceil((this.scroll.scrollTop + room) / ROW) + 8);
    for (let i = first; i < last; i++) this.body.append(this.row(i));
  }

  private row(i: number): HTMLElement {
    const { options } = this;
    const data = this.shown[i];
    const chosen = options.chosen?.(data) ?? false;
    const element = h("div", {
      role: "row",
      class: `trow${data === options.first ? " first" : ""}${chosen ? " chosen" : ""}${i === this.cursor ? " cursor" : ""}`,
      "aria-rowindex": i + 2,
      "aria-selected": chosen ? "true" : "false",
      onclick: () => {
        this.cursor = i;
        options.choose?.(data);
        this.draw();
      },
      ondblclick: () => options.act?.(data),
    });
    element.style.top = `${i * ROW}px`;
    for (const column of options.columns) {
      const text = plain(column.text(data));
      const cell = h("div", { role: "gridcell", class: `${column.number ? "num" : ""} ${column.cell?.(data) ?? ""}` });
      const color = column.color?.(data);
      if (color) {
        const mark = h("span", { class: "swatch", "aria-hidden": "true" });
        mark.style.background = color;
        cell.append(mark);
      }
      if (column.bar) {
        const bar = h("span", { class: "databar", "aria-hidden": "true" });
        bar.style.width = `${Math.min(1, Math.max(0, column.bar(data))) * 100}%`;
        cell.append(bar);
      }
      const shown = text.length > 400 ? `${text.slice(0, 400)}…` : text;
      const title = text.length > 14 ? shown : null;
      append(cell, [column.name && text.length > 14 ? h("span", { title }, endKept(column.name(data))) : h("span", { dir: column.number ? null : "auto", title }, shown)]);
      element.append(cell);
    }
    return element;
  }

  private key(e: KeyboardEvent): void {
    if (e.target !== this.scroll) return;
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW) - 2);
    const move: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (e.key in move && this.shown.length) {
      e.preventDefault();
      this.cursor = Math.min(this.shown.length - 1, Math.max(0, this.cursor + move[e.key]));
      this.see(this.cursor);
      this.options.choose?.(this.shown[this.cursor]);
      this.draw();
    } else if (e.key === "Enter" && this.cursor >= 0) {
      e.preventDefault();
      this.options.act?.(this.shown[this.cursor]);
    }
  }

  csv(): string {
    const { columns } = this.options;
    const lines = [columns.map((c) => csvField(c.unit ? `${c.title} (${c.unit})` : c.title)).join(",")];
    for (const row of this.shown) {
      lines.push(columns.map((c) => csvField((c.value ? c.value(row) : c.text(row)) ?? "")).join(","));
    }
    return `${lines.join("\r\n")}\r\n`;
  }
  private saveCsv(): void {
    save(`${this.options.name}.csv`, new Blob([this.csv()], { type: "text/csv" }));
  }
}

/** Quoted where needed; text that a spreadsheet would take for a formula gets an apostrophe. */
export function csvField(value: string | number): string {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
