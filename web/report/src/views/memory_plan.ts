// SPDX-License-Identifier: Apache-2.0
// What the values of one binding need, step by step: sums over their lives, the peak, and who holds it.
import type { Life, Profile } from "../profile";

const ALIGN = 64; // values in the arena begin at multiples of it
const MOST_STEPS = 1 << 20;

export interface Plan {
  table: number;
  steps: number; // lives are drawn over 0 … steps − 1
  stepAt: Int32Array; // position in profile.steps; -1: not in the profile
  arena: Life[];
  others: Life[]; // outputs, workspace, dynamic
  rows: Uint32Array; // of each of the others: its row below the arena
  rowCount: number;
  live: Float64Array; // bytes by step, all places together
  peak: number; // the step
  arenaBytes: number; // how far the highest block reaches
  arenaPeak: number; // most bytes that are live in the arena at once
}

export const lastStep = (plan: Plan, life: Life): number => Math.min(life.last, plan.steps - 1);
export const makerOf = (plan: Plan, life: Life): number => plan.stepAt[life.first] ?? -1;
/** -1 where the value lives on to the end of the run. */
export const userOf = (plan: Plan, life: Life): number => (life.last < plan.steps ? plan.stepAt[life.last] : -1);

function sums(lives: Life[], steps: number): Float64Array {
  const live = new Float64Array(steps + 1);
  for (const l of lives) {
    live[l.first] += l.bytes;
    live[Math.min(l.last, steps - 1) + 1] -= l.bytes;
  }
  for (let i = 1; i < steps; i++) live[i] += live[i - 1];
  return live.subarray(0, steps);
}

function highest(values: Float64Array): number {
  let at = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[at]) at = i;
  return at;
}

/** Lives in as few rows as possible: each takes the row that has been free for longest. A heap keeps rows by their end. */
export function stack(lives: Life[]): { rows: Uint32Array; count: number } {
  const order = lives.map((_, i) => i).sort((a, b) => lives[a].first - lives[b].first);
  const rows = new Uint32Array(lives.length);
  const heap: { end: number; row: number }[] = [];
  const sink = (at: number): void => {
    for (;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) if (child < heap.length && heap[child].end < heap[least].end) least = child;
      if (least === at) return;
      [heap[at], heap[least]] = [heap[least], heap[at]];
      at = least;
    }
  };
  const rise = (at: number): void => {
    for (let up = (at - 1) >> 1; at > 0 && heap[at].end < heap[up].end; at = up, up = (at - 1) >> 1) [heap[at], heap[up]] = [heap[up], heap[at]];
  };
  for (const i of order) {
    const { first, last } = lives[i];
    if (heap.length && heap[0].end < first) {
      rows[i] = heap[0].row;
      heap[0].end = last;
      sink(0);
    } else {
      rows[i] = heap.length;
      heap.push({ end: last, row: heap.length });
      rise(heap.length - 1);
    }
  }
  return { rows, count: heap.length };
}

function planOf(p: Profile, table: number, lives: Life[], own: number[]): Plan {
  let steps = 1;
  for (const i of own) if (!p.steps[i].folded) steps = Math.max(steps, p.steps[i].index + 1); // a folded one has no place among them
  if (!own.length) for (const l of lives) steps = Math.max(steps, l.first + 1);
  steps = Math.min(steps, MOST_STEPS);
  const stepAt = new Int32Array(steps).fill(-1);
  for (const i of own) if (p.steps[i].index < steps) stepAt[p.steps[i].index] = i;
  const good = lives.filter((l) => l.first < steps && l.last >= l.first && l.bytes >= 0);
  const arena = good.filter((l) => l.place === "arena");
  const others = good.filter((l) => l.place !== "arena").sort((a, b) => a.place.localeCompare(b.place));
  const { rows, count } = stack(others);
  const live = sums(good, steps);
  const inArena = sums(arena, steps);
  return {
    table,
    steps,
    stepAt,
    arena,
    others,
    rows,
    rowCount: count,
    live,
    peak: highest(live),
    arenaBytes: arena.reduce((most, l) => Math.max(most, Math.ceil((l.offset + l.bytes) / ALIGN) * ALIGN), 0),
    arenaPeak: inArena[highest(inArena)] ?? 0,
  };
}

/** One plan per binding that has lives, the one that needs most first. */
export function plansOf(p: Profile): Plan[] {
  const lives = new Map<number, Life[]>();
  for (const l of p.lives) {
    const list = lives.get(l.table);
    if (list) list.push(l);
    else lives.set(l.table, [l]);
  }
  const own = new Map<number, number[]>();
  p.steps.forEach((step, i) => {
    const list = own.get(step.table);
    if (list) list.push(i);
    else if (lives.has(step.table)) own.set(step.table, [i]);
  });
  return [...lives]
    .map(([table, list]) => planOf(p, table, list, own.get(table) ?? []))
    .sort((a, b) => b.live[b.peak] - a.live[a.peak]);
}

export function aliveAt(plan: Plan, step: number): Life[] {
  const alive = (l: Life): boolean => l.first <= step && step <= l.last && l.bytes > 0;
  return [...plan.arena.filter(alive), ...plan.others.filter(alive)];
}
