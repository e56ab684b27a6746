// SPDX-License-Identifier: Apache-2.0
// Statistics of a stretch of time: per name the spans that lie wholly inside it, so that count, mean and total are
// those of whole spans; and how much of it the operators cover.
import { button, h } from "../dom";
import * as f from "../format";
import { CATEGORIES, Cat, type Profile } from "../profile";
import { Table } from "../table";
import { firstFrom } from "./timeline_find";

export interface NameStats {
  name: string;
  category: string;
  span: number; // the first one
  count: number;
  total: number;
  mean: number;
  min: number;
  max: number;
  p50: number;
}
export interface AreaStats {
  spans: number;
  covered: number; // ns in which at least one operator runs
  names: NameStats[];
}

/** The k-th smallest of a list, which is reordered: for millions of values much faster than sorting them. */
export function smallest(list: Float64Array, k: number): number {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const pivot = list[(low + high) >>> 1];
    let i = low;
    let j = high;
    while (i <= j) {
      while (list[i] < pivot) i++;
      while (list[j] > pivot) j--;
      if (i > j) break;
      const swap = list[i];
      list[i++] = list[j];
      list[j--] = swap;
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else break;
  }
  return list[k];
}

/** Of an even number the mean of the two in the middle. The list is reordered. */
export function median(list: Float64Array): number {
  const half = list.length >>> 1;
  const upper = smallest(list, half);
  if (list.length % 2) return upper;
  let lower = list[0]; // all before the place are at most as large
  for (let i = 1; i < half; i++) lower = Math.max(lower, list[i]);
  return (lower + upper) / 2;
}

/** The spans wholly inside a stretch of time by name and category: per group its spans' durations. */
function grouped(p: Profile, from: number, to: number): { spans: number; first: number[]; durations: Float64Array[] } {
  const s = p.spans;
  const begin = firstFrom(s.start, from);
  const end = firstFrom(s.start, to);
  const kinds = CATEGORIES.length;
  const groups = new Int32Array(p.strings.length * kinds).fill(-1); // of a name and a category
  const of = new Int32Array(end - begin).fill(-1);
  const first: number[] = [];
  const counts: number[] = [];
  let spans = 0;
  for (let i = begin; i < end; i++) {
    if (s.start[i] + s.duration[i] > to) continue;
    const key = s.name[i] * kinds + (s.category[i] % kinds);
    if (groups[key] < 0) {
      groups[key] = first.length;
      first.push(i);
      counts.push(0);
    }
    counts[groups[key]]++;
    of[i - begin] = groups[key];
    spans++;
  }
  const durations = counts.map((n) => new Float64Array(n));
  const filled = new Uint32Array(counts.length);
  for (let i = begin; i < end; i++) {
    const k = of[i - begin];
    if (k >= 0) durations[k][filled[k]++] = s.duration[i];
  }
  return { spans, first, durations };
}

export function areaStats(p: Profile, from: number, to: number): AreaStats {
  const { spans, first, durations } = grouped(p, from, to);
  const names = durations.map((list, k) => {
    let total = 0;
    let min = Infinity;
    let max = 0;
    for (let i = 0; i < list.length; i++) {
      total += list[i];
      min = Math.min(min, list[i]);
      max = Math.max(max, list[i]);
    }
    const span = first[k];
    return {
      name: p.strings[p.spans.name[span]],
      category: CATEGORIES[p.spans.category[span]] ?? "",
      span,
      count: list.length,
      total,
      mean: total / list.length,
      min,
      max,
      p50: median(list),
    };
  });
  return { spans, covered: coveredTime(p, from, to), names };
}

/** Time in from…to with at least one operator (of any thread or device) under way. Spans are in order of start. */
export function coveredTime(p: Profile, from: number, to: number): number {
  const s = p.spans;
  let covered = 0;
  let reached = from;
  const last = firstFrom(s.start, to);
  for (let i = 0; i < last && reached < to; i++) {
    const cat = s.category[i];
    if (cat !== Cat.Operator && cat !== Cat.Device && cat !== Cat.Thread) continue;
    const end = Math.min(to, s.start[i] + s.duration[i]);
    if (end <= reached) continue;
    covered += end - Math.max(reached, s.start[i]);
    reached = end;
  }
  return covered;
}

export interface StatsPanel {
  element: HTMLElement;
  show(from: number, to: number): void;
}

export function statsPanel(
  p: Profile,
  color: (span: number) => string,
  act: { choose(span: number): void; zoom(): void; close(): void },
): StatsPanel {
  const said = h("p", { role: "status" });
  const time = (id: "total" | "mean" | "min" | "p50" | "max", title: string) => ({
    id,
    title,
    unit: "ns",
    number: true,
    width: "6rem",
    text: (r: NameStats) => f.time(r[id]),
    value: (r: NameStats) => r[id],
  });
  let most = 1;
  const table = new Table<NameStats>({
    name: "selection of the timeline",
    columns: [
      { id: "name", title: "Name", text: (r) => r.name, color: (r) => color(r.span), width: "minmax(9rem, 3fr)" },
      { id: "kind", title: "Kind", text: (r) => r.category, width: "6rem" },
      { ...time("total", "Total"), hint: "Sum over the spans in the selection", bar: (r) => r.total / most },
      { id: "count", title: "Count", number: true, width: "5rem", text: (r) => f.count(r.count), value: (r) => r.count },
      time("mean", "Mean"),
      time("min", "Min"),
      time("p50", "Median"),
      time("max", "Max"),
    ],
    rows: [],
    sort: { column: "total", down: true },
    words: (r) => `${r.name} ${r.category}`,
    choose: (r) => act.choose(r.span),
    height: "24vh",
    empty: h("p", { class: "faint pad" }, "No span lies wholly in the selection: select a longer time."),
  });
  const element = h(
    "section",
    { class: "tl-stats", "aria-label": "Statistics of the selected time" },
    h(
      "div",
      { class: "bar" },
      said,
      h("span", { class: "space" }),
      button("Zoom to it", act.zoom),
      button("Close", act.close, { title: "Close the statistics (Esc)" }),
    ),
    table.element,
  );
  element.hidden = true;
  return {
    element,
    show(from, to) {
      const stats = areaStats(p, from, to);
      most = 1;
      for (const r of stats.names) most = Math.max(most, r.total);
      const length = to - from;
      said.textContent =
        `${f.time(length)} selected: ${f.count(stats.spans)} whole spans; operators cover ${f.time(stats.covered)} ` +
        `(${f.percent(length > 0 ? stats.covered / length : 0)}) of it.`;
      element.hidden = false;
      table.rows = stats.names;
    },
  };
}
