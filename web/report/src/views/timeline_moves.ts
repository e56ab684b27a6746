// SPDX-License-Identifier: Apache-2.0
// From span to span on the timeline, and what is told of one.
import * as f from "../format";
import { firstEnding, firstStarting, HIDDEN, type Lanes } from "../lanes";
import { Cat, type Profile, runName, spanCategory, spanName, stepNode, stepTitle } from "../profile";
import type { Selection } from "../state";
import { firstFrom, placeOf, spansOf } from "./timeline_find";

/** The span a selection means on the timeline: its own, else one of its steps, in sight if there is one. -1: none. */
export function whichSpan(p: Profile, selection: Selection, t0: number, t1: number): number {
  if (selection.span >= 0) return selection.span;
  if (!selection.steps.size) return -1;
  const s = p.spans;
  const list = spansOf(p, selection.steps);
  const from = placeOf(list, firstFrom(s.start, t0));
  const is = (i: number): boolean => s.category[i] !== Cat.Thread;
  for (let k = from; k < list.length; k++) {
    if (s.start[list[k]] >= t1) break;
    if (is(list[k])) return list[k];
  }
  for (let k = from - 1; k >= 0; k--) if (is(list[k])) return list[k];
  for (let k = from; k < list.length; k++) if (is(list[k])) return list[k];
  return -1;
}

/** Where the keys begin when nothing is selected: the first operator in sight, else the first span. */
function firstInSight(p: Profile, t0: number, t1: number): number {
  const s = p.spans;
  const first = firstFrom(s.start, t0);
  const last = firstFrom(s.start, t1);
  for (let i = first; i < last; i++) if (s.category[i] === Cat.Operator || s.category[i] === Cat.Device) return i;
  return first < last ? first : s.n ? Math.min(first, s.n - 1) : -1;
}

/** The span beside, around or inside another one; -1: there is none. */
export function beside(p: Profile, lanes: Lanes, where: "before" | "behind" | "out" | "in", from: number, t0: number, t1: number): number {
  if (from < 0) return firstInSight(p, t0, t1);
  if (where === "out") return lanes.within[from];
  const s = p.spans;
  const level = lanes.level[from];
  const lane = lanes.threads[lanes.laneOf[s.thread[from]] ?? -1];
  if (!lane || level === HIDDEN) return -1;
  if (where === "in") {
    const below = lane.rows[level + 1];
    if (!below) return -1;
    const k = firstEnding(s, below, s.start[from]);
    return k < below.length && s.start[below[k]] < s.start[from] + s.duration[from] ? below[k] : -1;
  }
  const row = lane.rows[level];
  let k = firstStarting(s, row, s.start[from]);
  while (k < row.length && row[k] !== from) k++; // several may begin at the same time
  return row[k + (where === "before" ? -1 : 1)] ?? -1;
}

const wholes = new WeakMap<Profile, Map<number, number>>();
/** How long the run of a span took; NaN: it belongs to none. */
function runTime(p: Profile, i: number): number {
  let of = wholes.get(p);
  if (!of) {
    of = new Map();
    for (let k = 0; k < p.runs.n; k++) of.set(p.spans.run[p.runs.span[k]], p.spans.duration[p.runs.span[k]]);
    wholes.set(p, of);
  }
  return p.spans.run[i] ? (of.get(p.spans.run[i]) ?? NaN) : NaN;
}

export function spanLines(p: Profile, i: number): string[] {
  const s = p.spans;
  const step = s.step[i] >= 0 ? p.steps[s.step[i]] : null;
  const share = s.duration[i] / runTime(p, i);
  const text = p.strings[s.text[i]];
  const lines = [
    f.shorten(f.plain(spanName(p, i) || "(unnamed)"), 120),
    `${f.time(s.duration[i])}${Number.isFinite(share) ? `, ${f.percent(share)} of ${runName(p, i) || "its run"}` : runName(p, i) ? `, ${runName(p, i)}` : ""}`,
    `starts at ${f.time(s.start[i])}; ${f.shorten(f.plain(spanCategory(p, i)), 40)}`,
  ];
  if (step) lines.push(f.shorten(f.plain(`${stepTitle(step)} ${stepNode(step)}`), 160));
  if (step?.kernel) lines.push(f.shorten(f.plain(step.kernel), 120));
  if (text) lines.push(f.shorten(f.plain(text), 200));
  return lines;
}
