// SPDX-License-Identifier: Apache-2.0
// From the start of the program to its first result: reading, passes, packing, binding and the first run, as a
// waterfall on one scale of time.
import { type BarRow, barRows, brief, Charts } from "../chart";
import { categoryColor } from "../colors";
import { append, empty, h, perFrame } from "../dom";
import * as f from "../format";
import { pictureButtons } from "../picture";
import { Cat, type Profile, spanCategory, spanName } from "../profile";
import type { Page } from "../state";
import { type Column, Table } from "../table";
import type { Opened, View } from "../view";

const ROWS = 5000; // of the table
const BARS = 60; // of the picture: the longest
const LEAST = 0.002; // of the time to the first result: less cannot be seen

interface Line {
  span: number;
  depth: number;
  name: string;
}
export interface Startup {
  first: number; // the first iteration's span; -1: none
  from: number; // ns: where the model began to be loaded
  to: number; // and where the first result was there
  lines: Line[]; // in the order of their start
  loading: number; // how many of them came before the first run
}

const LOADING = new Set<number>([Cat.Model, Cat.Executor, Cat.Memory, Cat.User]);

function title(p: Profile, i: number): string {
  const text = p.strings[p.spans.text[i]];
  return text ? `${spanName(p, i)} ${text}` : spanName(p, i);
}

/** Whether a span holds the first run and others behind it: the model's own. It is no part of the start. */
function holdsRuns(p: Profile, i: number, first: number): boolean {
  const { start, duration } = p.spans;
  return first >= 0 && i !== first && start[i] <= start[first] && start[i] + duration[i] > start[first] + duration[first];
}

/** Levels below the top; -1: what it lies in is already a run. Bounded, since links may be anything. */
function depthOf(p: Profile, i: number, within: number): number {
  const { parent, category } = p.spans;
  let depth = 0;
  for (let at = parent[i], n = 0; at >= 0 && n < 64; at = parent[at], n++) {
    if (category[at] === Cat.Iteration && at !== within) return -1;
    if ((LOADING.has(category[at]) && !holdsRuns(p, at, within)) || at === within) depth++;
  }
  return depth;
}

export function startupOf(p: Profile): Startup {
  const { n, start, duration, category } = p.spans;
  const first = category.indexOf(Cat.Iteration);
  // The model's own span holds its runs only; reading and packing come before it.
  const begin = category.findIndex((c) => LOADING.has(c));
  const from = begin >= 0 && (first < 0 || start[begin] < start[first]) ? start[begin] : first >= 0 ? start[first] : 0;
  const to = first >= 0 ? start[first] + duration[first] : p.end;
  const lines: Line[] = [];
  let loading = 0;
  for (let i = 0; i < n && start[i] <= to && lines.length < ROWS; i++) {
    // After the first run began only what belongs to it is of interest: the binding, allocations.
    const wanted = i === first || LOADING.has(category[i]);
    const depth = wanted ? depthOf(p, i, first) : -1;
    if (depth < 0 || (first >= 0 && i > first && !inside(p, i, first))) continue;
    lines.push({ span: i, depth, name: title(p, i) });
    if ((first < 0 || i < first) && !holdsRuns(p, i, first)) loading++;
  }
  return { first, from, to, lines, loading };
}

function inside(p: Profile, i: number, of: number): boolean {
  const { parent, start, duration } = p.spans;
  for (let at = parent[i], n = 0; at >= 0 && n < 64; at = parent[at], n++) if (at === of) return true;
  return start[i] >= start[of] && start[i] + duration[i] <= start[of] + duration[of];
}

function bars(page: Page, made: Startup, dark: boolean): BarRow[] {
  const p = page.profile;
  const { start, duration, category } = p.spans;
  const whole = made.to - made.from || 1;
  const seen = made.lines.filter(({ span }) => duration[span] >= LEAST * whole && !holdsRuns(p, span, made.first));
  const longest = seen.sort((a, b) => duration[b.span] - duration[a.span]).slice(0, BARS);
  return longest
    .sort((a, b) => a.span - b.span)
    .map(({ span, depth, name }) => ({
      key: `span-${span}`,
      name: span === made.first ? "first run" : name,
      indent: depth,
      from: start[span] - made.from,
      to: start[span] + duration[span] - made.from,
      text: f.time(duration[span]),
      fill: span === made.first ? categoryColor(Cat.Operator, dark) : categoryColor(category[span], dark),
      lines: [brief(name, 120), `${f.time(duration[span])}, ${f.percent(duration[span] / whole)} of the time to the first result`, `starts at ${f.time(start[span] - made.from)}`],
      chosen: page.selection.span === span,
      strong: span === made.first,
      pick: () => page.selectSpan(span),
    }));
}

function table(page: Page, made: Startup): Table<Line> {
  const p = page.profile;
  const { start, duration } = p.spans;
  const whole = made.to - made.from || 1;
  const asked = page.params.get("sort") ?? "start";
  const share = (span: number): number | null => (holdsRuns(p, span, made.first) ? null : duration[span] / whole);
  const columns: Column<Line>[] = [
    { id: "name", title: "What", text: ({ depth, name, span }) => `${"\u2003".repeat(Math.min(depth, 8))}${span === made.first ? `first run (${name})` : holdsRuns(p, span, made.first) ? `${name} (all runs)` : name}`, value: ({ name }) => name, width: "minmax(12rem, 2fr)" },
    { id: "kind", title: "Kind", text: ({ span }) => spanCategory(p, span), width: "8rem" },
    { id: "start", title: "Start", hint: "Since the model began to be loaded", unit: "ns", number: true, text: ({ span }) => f.time(start[span] - made.from), value: ({ span }) => start[span] - made.from },
    { id: "duration", title: "Duration", unit: "ns", number: true, text: ({ span }) => f.time(duration[span]), value: ({ span }) => duration[span] },
    { id: "share", title: "Share", hint: "Of the time to the first result", unit: "0…1", number: true, text: ({ span }) => f.percent(share(span) ?? NaN), value: ({ span }) => share(span), bar: ({ span }) => share(span) ?? 0 },
  ];
  return new Table<Line>({
    name: "start-up",
    columns,
    rows: made.lines,
    sort: { column: asked.replace(/^-/, ""), down: asked.startsWith("-") },
    words: ({ name, span }) => `${name} ${spanCategory(p, span)}`,
    choose: ({ span }) => page.selectSpan(span),
    act: () => page.go("timeline"),
    chosen: ({ span }) => page.selection.span === span,
    sorted: (id, down) => page.set("sort", `${down ? "-" : ""}${id}`),
    filter: page.params.get("filter") ?? "",
    filtered: (text) => page.set("filter", text || null),
  });
}

function headline(p: Profile, made: Startup): HTMLElement {
  const { start, duration } = p.spans;
  const run = made.first >= 0 ? duration[made.first] : NaN;
  const usual = p.summary.iterations ? p.summary.wall.p50 : NaN;
  const bound = made.lines.some(({ span }) => spanName(p, span) === "bind"); // then the waterfall shows it, with all around the steps
  const binding = bound ? 0 : p.steps.reduce((sum, step) => sum + (step.bind_ns > 0 ? step.bind_ns : 0), 0);
  const stat = (name: string, value: number, text = f.time(value)): HTMLElement | null =>
    Number.isFinite(value) && value > 0 ? h("div", { class: "stat small" }, h("b", null, text), h("span", null, name)) : null;
  const large = (name: string, value: number): HTMLElement => h("div", { class: "stat" }, h("b", null, f.time(value)), h("span", null, name));
  const stats = h("div", { class: "stats" });
  append(stats, [
    made.first >= 0 ? large(made.loading ? "to the first result" : "first run", made.loading ? made.to - made.from : run) : null,
    made.loading && made.first >= 0 ? stat("before the first run", start[made.first] - made.from) : null,
    made.loading ? stat("first run", run) : null,
    stat("median run", usual),
    run > usual ? stat("first run against the median", run / usual, `${f.digits(run / usual)} ×`) : null,
    stat("binding the steps", binding),
  ]);
  return stats;
}

function open(root: HTMLElement, page: Page): Opened {
  const p = page.profile;
  const made = startupOf(p);
  const own = /^\d/.test(p.sonde);
  append(root, [h("h2", { class: "visually-hidden" }, "Start-up")]);
  if (made.first < 0 && !made.lines.length) {
    root.append(empty("Nothing was recorded of the start", "This profile holds neither the loading of a model nor a run. Profile a model from its start:", "sonde profile MODEL --level 2 -o report.html"));
    return {};
  }
  root.append(h("section", { class: "card startup-head", "aria-label": made.loading ? "Time to the first result" : "First run" }, headline(p, made)));
  if (!made.loading) {
    root.append(
      empty(
        "No record of loading",
        own && p.level < 2
          ? `This profile was recorded at level ${p.level}, which holds operators only. Level 2, the default, also records reading, passes, packing and binding:`
          : own
            ? "The model was loaded before recording began. The command line records it from the start:"
            : "Profiles of other programs do not tell how the model was loaded. sonde’s own do:",
        "sonde profile MODEL --level 2 -o report.html",
      ),
    );
  }
  const charts = new Charts();
  const chart = charts.add(
    `Waterfall of the start: ${made.lines.length} spans over ${f.time(made.to - made.from)}. The table holds the same figures.`,
    true,
    (svg, width, t) => barRows(svg, width, t, bars(page, made, t.dark), { low: 0, high: made.to - made.from || 1, axis: f.mark }),
  );
  const list = table(page, made);
  const hidden = made.lines.length - bars(page, made, false).length;
  root.append(
    h(
      "div",
      { class: "cards startup" },
      h(
        "section",
        { class: "card wide", "aria-label": "Waterfall" },
        h("h2", null, "Waterfall", pictureButtons("start-up", () => chart.svg)),
        chart.element,
        hidden > 0 ? h("p", { class: "faint" }, `${f.count(hidden)} more ${hidden === 1 ? "span is" : "spans are"} in the table only: too short to be seen, or around all runs.`) : null,
      ),
      h("section", { class: "card wide", "aria-label": "Spans" }, h("h2", null, "Spans"), list.element),
    ),
  );
  return {
    search: list.search,
    selected: perFrame(() => {
      chart.redraw();
      list.reveal();
    }),
    close: () => charts.close(),
  };
}

export const startup: View = {
  id: "startup",
  title: "Start-up",
  shown: () => true,
  open,
};
