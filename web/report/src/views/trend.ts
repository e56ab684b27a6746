// SPDX-License-Identifier: Apache-2.0
// A benchmark over time: one chart of the trend that is chosen, the two entries that somebody wants to compare, and all
// entries as a table. Data without trends have no such view.
import { brief } from "../chart";
import { onTheme } from "../colors";
import { append, clear, h, perFrame } from "../dom";
import * as f from "../format";
import type { PageData, Trend, TrendPoint } from "../profile";
import type { Page } from "../state";
import { Table } from "../table";
import type { Opened, View } from "../view";
import { drawingButtons } from "./graph_picture";
import { TrendChart } from "./trend_chart";
import { changeMark, changeText, commitOf, dateOf, diffCommand, hasInterval, isShown, lastChange, lastPair, levelAt, linesOf, sentenceOf, timeOf, whichOf } from "./trend_words";

const TITLE = 160;
interface Entry {
  position: number;
  point: TrendPoint;
}

/** The trends of the page, those of the profile shown first. */
const trendsOf = (page: Page): Trend[] => page.profile.trends ?? page.data.profiles.find((p) => p.trends?.length)?.trends ?? [];

class TrendCard {
  readonly element: HTMLElement;
  private readonly page: Page;
  private readonly trend: Trend;
  private readonly chart: TrendChart;
  private readonly pair = h("div", { class: "trend-pair" });
  private readonly said = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  private readonly table: Table<Entry>;
  private picked: number[];

  constructor(page: Page, trend: Trend) {
    this.page = page;
    this.trend = trend;
    const ids = new Map(trend.points.map((p, i) => [String(p.id), i]));
    this.picked = (page.params.get("pick") ?? "").split(",").flatMap((id) => ids.get(id) ?? []).slice(0, 2);
    this.chart = new TrendChart(trend, {
      picked: () => this.picked,
      pick: (i) => this.pick(i),
      clear: () => this.choose([]),
      read: (i) => void (this.said.textContent = i === null ? "" : linesOf(trend.points[i]).join(", ")),
    });
    this.table = this.entries();
    this.element = h(
      "div",
      { class: "cards" },
      h(
        "section",
        { class: "card wide", "aria-label": "Trend" },
        h("h2", null, h("span", { dir: "auto" }, brief(trend.title || "Trend", TITLE)), drawingButtons("trend", () => this.chart.drawing())),
        h("p", null, sentenceOf(trend)),
        trend.machine ? h("p", { class: "faint", dir: "auto" }, brief(trend.machine, TITLE)) : null,
        this.chart.element,
        h(
          "div",
          { class: "legend" },
          h("span", null, "● an entry with its 95 % interval"),
          trend.levels.length ? h("span", null, "━ median of a level") : null,
          trend.points.some((p) => p.change) ? h("span", null, "┆ change of level that noise does not explain") : null,
        ),
        this.said,
      ),
      h("section", { class: "card wide", "aria-label": "Comparison of two entries" }, h("h2", null, "Compare two entries"), this.pair),
      h("section", { class: "card wide", "aria-label": "Entries" }, h("h2", null, "Entries"), this.table.element),
    );
    this.showPair();
  }

  get search(): HTMLInputElement {
    return this.table.search;
  }
  show(): void {
    this.chart.show();
  }
  close(): void {
    this.chart.close();
  }

  private entries(): Table<Entry> {
    const { page, trend } = this;
    const asked = page.params.get("sort") ?? "-entry";
    return new Table<Entry>({
      name: "entries",
      columns: [
        { id: "entry", title: "Entry", number: true, text: ({ point }) => String(point.id), value: ({ point }) => point.id, width: "6rem" },
        { id: "date", title: "Date", text: ({ point }) => dateOf(point, true), value: ({ point }) => point.at_unix_ms ?? null, width: "11.5rem" },
        { id: "commit", title: "Commit", text: ({ point }) => commitOf(point), value: ({ point }) => point.commit ?? "", width: "8.5rem" },
        ...(trend.across ? [{ id: "which", title: trend.across[0].toUpperCase() + trend.across.slice(1), text: ({ point }: Entry) => point.which ?? "", width: "minmax(8rem, 1fr)" }] : []),
        { id: "median", title: "Median", unit: "ms", number: true, text: ({ point }) => (isShown(point.value_ms) ? timeOf(point.value_ms) : ""), value: ({ point }) => (isShown(point.value_ms) ? point.value_ms : null) },
        { id: "interval", title: "95 % interval", text: ({ point }) => (hasInterval(point) ? `${timeOf(point.low_ms as number)} … ${timeOf(point.high_ms as number)}` : ""), width: "12rem" },
        { id: "change", title: "Change", text: ({ point }) => (point.change ? changeMark(point.ratio) : ""), value: ({ point }) => (point.change ? (point.ratio ?? null) : null), cell: ({ point }) => (point.change ? (point.ratio && point.ratio > 1 ? "bad" : "good") : ""), width: "7.5rem" },
        { id: "note", title: "Note", text: ({ point }) => point.note ?? "", width: "minmax(8rem, 2fr)" },
      ],
      rows: trend.points.map((point, position) => ({ position, point })),
      sort: { column: asked.replace(/^-/, ""), down: asked.startsWith("-") },
      words: ({ point }) => `${point.id} ${point.commit ?? ""} ${point.which ?? ""} ${point.note ?? ""} ${dateOf(point, true)}`,
      choose: ({ position }) => this.chart.goTo(position),
      act: ({ position }) => this.pick(position),
      chosen: ({ position }) => this.picked.includes(position),
      sorted: (id, down) => page.set("sort", `${down ? "-" : ""}${id}`),
      filter: page.params.get("filter") ?? "",
      filtered: (text) => page.set("filter", text || null),
    });
  }

  /** A third one takes the place of the one that was chosen first; one that is chosen already is given up. */
  private pick(position: number): void {
    const others = this.picked.filter((i) => i !== position);
    this.choose(others.length < this.picked.length ? others : [...others.slice(-1), position]);
  }
  private choose(picked: number[]): void {
    this.picked = picked;
    this.page.set("pick", picked.length ? picked.map((i) => this.trend.points[i].id).join(",") : null);
    this.showPair();
    this.chart.redraw();
    this.table.refresh();
  }

  private showPair(): void {
    const { points } = this.trend;
    clear(this.pair);
    const own = this.picked.length === 2 ? [...this.picked].sort((a, b) => a - b) : null;
    const pair = own ?? lastPair(this.trend);
    if (!pair) return append(this.pair, [h("p", { class: "faint" }, "There is nothing to compare yet: this trend has fewer than two entries.")]);
    const [a, b] = pair.map((i) => points[i]);
    const named = (p: TrendPoint): string => `${p.id}${p.which && a.which !== b.which ? ` (${whichOf(p)})` : ""}`;
    const ratio = a.value_ms > 0 && isShown(b.value_ms) ? b.value_ms / a.value_ms : NaN;
    const why = own
      ? ""
      : this.picked.length
        ? `Entry ${points[this.picked[0]].id} is chosen; choose a second one. Meanwhile: `
        : "Click two points, or press Enter on them, to compare their profiles. Meanwhile: ";
    const which = own ? "The entries chosen" : b.change ? "the entries on both sides of the last change" : "the last two entries";
    append(this.pair, [
      h("p", null, `${why}${which}, ${named(a)} and ${named(b)}`, Number.isFinite(ratio) ? `: ${timeOf(a.value_ms)} and ${timeOf(b.value_ms)}, ${f.change(ratio)}.` : "."),
      h("pre", null, h("code", { class: "trend-command" }, diffCommand(this.trend, a, b))),
      h("p", { class: "faint" }, "This compares their operators, with verdicts from all samples. Two single entries say less than two levels."),
    ]);
  }
}

/** All trends, where there are several. */
function overview(page: Page, trends: Trend[], shown: number, choose: (i: number) => void): HTMLElement {
  const rows = trends.map((trend, i) => ({ trend, i, now: levelAt(trend, trend.points.length - 1), last: trend.points[lastChange(trend)] as TrendPoint | undefined }));
  const table = new Table<(typeof rows)[number]>({
    name: "trends",
    columns: [
      { id: "title", title: "Trend", text: ({ trend }) => trend.title || "–", width: "minmax(12rem, 2fr)" },
      { id: "machine", title: "Machine", text: ({ trend }) => trend.machine, width: "minmax(9rem, 1fr)" },
      { id: "entries", title: "Entries", number: true, text: ({ trend }) => f.count(trend.points.length), value: ({ trend }) => trend.points.length },
      { id: "now", title: "Level now", unit: "ms", number: true, text: ({ now }) => (isShown(now) ? timeOf(now) : ""), value: ({ now }) => (isShown(now) ? now : null) },
      { id: "changes", title: "Changes", number: true, text: ({ trend }) => f.count(trend.points.filter((p) => p.change).length), value: ({ trend }) => trend.points.filter((p) => p.change).length },
      { id: "last", title: "Last change", text: ({ last }) => (last ? `${changeMark(last.ratio)} ${changeText(last.ratio).split(" ")[0]}` : ""), value: ({ last }) => last?.ratio ?? null, cell: ({ last }) => (last ? (last.ratio && last.ratio > 1 ? "bad" : "good") : ""), width: "9rem" },
    ],
    rows,
    words: ({ trend }) => `${trend.title} ${trend.machine}`,
    choose: ({ i }) => choose(i),
    chosen: ({ i }) => i === Number(page.params.get("t") ?? shown),
    height: "18rem",
  });
  return h("section", { class: "card wide trend-list", "aria-label": "Trends" }, h("h2", null, "Trends"), table.element);
}

function open(root: HTMLElement, page: Page): Opened {
  const trends = trendsOf(page);
  const asked = Math.floor(Number(page.params.get("t") ?? 0));
  let shown = asked >= 0 && asked < trends.length ? asked : 0;
  const place = h("div", null);
  let card = new TrendCard(page, trends[shown]);
  const choose = (i: number): void => {
    if (i === shown) return;
    shown = i;
    page.set("t", String(i));
    for (const key of ["pick", "sort", "filter"]) page.set(key, null);
    card.close();
    clear(place);
    card = new TrendCard(page, trends[i]);
    place.append(card.element);
    card.show();
  };
  append(root, [h("h2", { class: "visually-hidden" }, "Trend"), trends.length > 1 ? overview(page, trends, shown, choose) : null, place]);
  place.append(card.element);
  card.show();
  const unwatch = onTheme(() => card.show());
  return {
    get search() {
      return card.search;
    },
    resized: perFrame(() => card.show()),
    close: () => {
      unwatch();
      card.close();
    },
  };
}

export const trend: View = {
  id: "trend",
  title: "Trend",
  keys: [
    ["← →", "along the entries (trend)"],
    ["PgUp PgDn", "along the changes (trend)"],
    ["Enter", "choose an entry to compare (trend)"],
    ["W S A D 0", "zoom and move (trend)"],
  ],
  shown: (data: PageData) => data.profiles.some((p) => Boolean(p.trends?.length)),
  open,
};
