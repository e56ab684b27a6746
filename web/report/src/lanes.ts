// SPDX-License-Identifier: Apache-2.0
// Spans in rows, as the timeline draws them: one lane per thread, in it one row per level of nesting. A row lists the
// positions of its spans in the order of time; they do not overlap, so everything in sight is found by binary search
// and a drawing touches about two spans per pixel, however many there are.
import { Cat, type Profile, type Spans } from "./profile";

export interface Lane {
  thread: number; // index into the profile's threads
  depth: number; // number of rows
  rows: Uint32Array[]; // per level: positions of spans
}
export interface Lanes {
  threads: Lane[];
  level: Uint8Array; // per span: its row; HIDDEN: nested too deep to be drawn
  within: Int32Array; // per span: the span around it on its thread; -1: none
  laneOf: (number | undefined)[]; // per thread: index into threads
}

export const HIDDEN = 255;
const ROUNDING = 1000; // ns: files with whole microseconds let a span end one too late
const LEVELS_UP = 64; // looked at for a span that contains another one, so that no input makes the build quadratic

const lanes = new WeakMap<Profile, Lanes>();
export function lanesOf(p: Profile): Lanes {
  let made = lanes.get(p);
  if (!made) lanes.set(p, (made = buildLanes(p.spans)));
  return made;
}

/** Whether a span that ends at `end` is over when the next one begins, give or take the rounding of the file. */
function over(end: number, nextStart: number, nextEnd: number): boolean {
  return end <= nextStart || (end <= nextStart + ROUNDING && nextEnd > end);
}

interface Open {
  stack: number[]; // positions of the spans that are not over yet
  ends: number[];
  counts: number[]; // spans per row
}

export function buildLanes(s: Spans): Lanes {
  const level = new Uint8Array(s.n);
  const within = new Int32Array(s.n);
  const threads = new Map<number, Open>();
  let thread = -1;
  let now: Open = { stack: [], ends: [], counts: [] };
  for (let i = 0; i < s.n; i++) {
    if (s.thread[i] !== thread) {
      thread = s.thread[i];
      now = threads.get(thread) ?? { stack: [], ends: [], counts: [] };
      threads.set(thread, now);
    }
    const { stack, ends, counts } = now;
    const start = s.start[i];
    const end = start + s.duration[i];
    while (ends.length && over(ends[ends.length - 1], start, end)) {
      ends.pop();
      stack.pop();
    }
    const depth = stack.length;
    const lowest = Math.max(0, depth - LEVELS_UP);
    let around = depth - 1;
    while (around >= lowest && ends[around] + ROUNDING < end) around--;
    within[i] = around >= lowest ? stack[around] : -1;
    const row = Math.min(depth, HIDDEN);
    level[i] = row;
    if (row < counts.length) counts[row]++;
    else if (row < HIDDEN) counts.push(1);
    stack.push(i);
    ends.push(end);
  }
  return { ...fillRows(s, level, threads), level, within };
}

function fillRows(s: Spans, level: Uint8Array, seen: Map<number, Open>): Pick<Lanes, "threads" | "laneOf"> {
  // Threads that run inferences come first, then those that help them.
  const running = new Set<number>();
  for (let i = 0; i < s.n; i++) if (s.category[i] === Cat.Iteration) running.add(s.thread[i]);
  const threads = [...seen]
    .sort(([a], [b]) => Number(running.has(b)) - Number(running.has(a)) || a - b)
    .map(([thread, { counts }]) => ({ thread, depth: counts.length, rows: counts.map((n) => new Uint32Array(n)) }));
  const laneOf: number[] = [];
  threads.forEach((lane, k) => (laneOf[lane.thread] = k));
  const filled = threads.map((lane) => new Uint32Array(lane.depth));
  for (let i = 0; i < s.n; i++) {
    const k = laneOf[s.thread[i]];
    const row = level[i];
    if (row < HIDDEN) threads[k].rows[row][filled[k][row]++] = i;
  }
  return { threads, laneOf };
}

/** The same rows with only some spans (positions in order): hits of a search, a selection. */
export function rowsOf(s: Spans, made: Lanes, spans: Uint32Array): Uint32Array[][] {
  const counts = made.threads.map((lane) => new Uint32Array(lane.depth));
  for (let k = 0; k < spans.length; k++) {
    const lane = made.laneOf[s.thread[spans[k]]] as number;
    if (made.level[spans[k]] < HIDDEN) counts[lane][made.level[spans[k]]]++;
  }
  const rows = counts.map((lane) => Array.from(lane, (n) => new Uint32Array(n)));
  for (const lane of counts) lane.fill(0);
  for (let k = 0; k < spans.length; k++) {
    const lane = made.laneOf[s.thread[spans[k]]] as number;
    const level = made.level[spans[k]];
    if (level < HIDDEN) rows[lane][level][counts[lane][level]++] = spans[k];
  }
  return rows;
}

// ---- a row

/** The first place in a row, from `at` on, whose span begins at `t` or later. Near ones are found at once. */
export function firstStarting(s: Spans, row: Uint32Array, t: number, at = 0): number {
  let step = 1;
  let low = at;
  let high = at;
  while (high < row.length && s.start[row[high]] < t) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = Math.min(high, row.length);
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (s.start[row[mid]] < t) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** The first place in a row whose span ends behind `t`. */
export function firstEnding(s: Spans, row: Uint32Array, t: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (s.start[row[mid]] + s.duration[row[mid]] <= t) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** The place in a row of what is at `t`, or of what is nearest within `slack`; -1: nothing. */
export function placeAt(s: Spans, row: Uint32Array, t: number, slack: number): number {
  const k = firstEnding(s, row, t);
  if (k < row.length && s.start[row[k]] <= t) return k;
  const before = k > 0 ? t - (s.start[row[k - 1]] + s.duration[row[k - 1]]) : Infinity;
  const after = k < row.length ? s.start[row[k]] - t : Infinity;
  if (Math.min(before, after) > slack) return -1;
  return before <= after ? k - 1 : k;
}

/**
 * Calls `box` for what is to be seen of a row between t0 and t1: places first…last and the time they cover. Spans
 * shorter than a pixel (a time) that begin in the same pixel are one box.
 */
export function walk(
  s: Spans,
  row: Uint32Array,
  t0: number,
  t1: number,
  pixel: number,
  box: (first: number, last: number, from: number, to: number) => void,
): void {
  let i = firstEnding(s, row, t0);
  while (i < row.length) {
    const from = s.start[row[i]];
    if (from >= t1) return;
    if (s.duration[row[i]] >= pixel) {
      box(i, i, from, from + s.duration[row[i]]);
      i++;
      continue;
    }
    const edge = t0 + (Math.floor((from - t0) / pixel) + 1) * pixel;
    let next = firstStarting(s, row, edge, i + 1);
    if (next - 1 > i && s.duration[row[next - 1]] >= pixel) next--; // long enough for a box of its own
    const last = row[next - 1];
    box(i, next - 1, from, s.start[last] + s.duration[last]);
    i = next;
  }
}

// ---- the whole profile

/** How busy each of `n` equal parts of the profile is, 0…1 of its busiest: time of operators, else of all spans. */
export function density(p: Profile, n: number): Float32Array {
  const s = p.spans;
  const made = new Float64Array(n + 1); // what lies in a part
  const steps = new Float64Array(n + 2); // difference of what covers whole parts
  const scale = p.end > 0 ? n / p.end : 0;
  let some = false;
  for (const operators of [true, false]) {
    if (some) break;
    for (let i = 0; i < s.n; i++) {
      const cat = s.category[i];
      if (operators ? cat !== Cat.Operator && cat !== Cat.Device && cat !== Cat.Thread : cat === Cat.Model) continue;
      some = true;
      const a = s.start[i] * scale;
      const b = (s.start[i] + s.duration[i]) * scale;
      const first = Math.min(n - 1, Math.floor(a));
      const last = Math.min(n - 1, Math.floor(b));
      if (first === last) {
        made[first] += b - a;
        continue;
      }
      made[first] += first + 1 - a;
      made[last] += b - last;
      steps[first + 1] += 1;
      steps[last] -= 1;
    }
  }
  const out = new Float32Array(n);
  let whole = 0;
  let most = 0;
  for (let k = 0; k < n; k++) {
    whole += steps[k];
    out[k] = made[k] + whole;
    most = Math.max(most, out[k]);
  }
  if (most > 0) for (let k = 0; k < n; k++) out[k] /= most;
  return out;
}

/** The time of one measured run as runs usually are, with a little room at both sides: the last of those nearest to the median; null: there is none. */
export function typicalRun(p: Profile): [number, number] | null {
  let best = -1;
  let least = Infinity;
  for (let k = p.runs.n - 1; k >= 0; k--) {
    if (p.spans.flags[p.runs.span[k]] & 1) continue;
    const off = Math.abs(p.runs.wall[k] - p.summary.wall.p50);
    if (off < least || best < 0) [best, least] = [k, off];
  }
  if (best < 0) return null;
  const i = p.runs.span[best];
  const room = p.spans.duration[i] * 0.03;
  return [Math.max(0, p.spans.start[i] - room), Math.min(p.end, p.spans.start[i] + p.spans.duration[i] + room)];
}

/** Distances of ticks: 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-3)));
  for (const k of [1, 2, 5]) if (k * power >= least) return k * power;
  return 10 * power;
}
