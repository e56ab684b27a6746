// SPDX-License-Identifier: Apache-2.0
// What something takes in a run as a rule: the median of the runs it is in, times how many of all these are. This is the
// profile's own arithmetic (Row.usual_ns) for groups that it has no rows of; one slow run does not move it.
import { Cat, type Profile } from "./profile";

export const OUTSIDE = -1; // a span of no run

/** Per span the position of its run's span. `around` says which span a span is in; an earlier one. */
export function runsOf(p: Profile, around: (i: number) => number): Int32Array {
  const { n, category } = p.spans;
  const run = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    const up = around(i);
    const outer = up >= 0 && up < i ? run[up] : OUTSIDE;
    run[i] = outer !== OUTSIDE ? outer : category[i] === Cat.Iteration ? i : OUTSIDE;
  }
  return run;
}

/** The usual time of a run times the number of runs, per group. Spans of no group (below 0) are left out. */
export function usualSums(groups: number, group: Int32Array, run: Int32Array, ns: Float64Array): Float64Array {
  const n = group.length;
  const first = new Int32Array(groups + 1);
  for (let i = 0; i < n; i++) if (group[i] >= 0) first[group[i] + 1]++;
  for (let g = 0; g < groups; g++) first[g + 1] += first[g];
  const at = first.slice();
  const spans = new Int32Array(first[groups]);
  for (let i = 0; i < n; i++) if (group[i] >= 0) spans[at[group[i]]++] = i;
  const place = new Int32Array(n + 1).fill(-1); // per run: where its sum is; of OUTSIDE the last one
  const made = new Float64Array(groups);
  const sums = new Float64Array(spans.length);
  for (let g = 0; g < groups; g++) {
    let runs = 0;
    for (let k = first[g]; k < first[g + 1]; k++) {
      const key = run[spans[k]] < 0 ? n : run[spans[k]];
      if (place[key] < 0) sums[(place[key] = runs++)] = 0;
      sums[place[key]] += ns[spans[k]];
    }
    for (let k = first[g]; k < first[g + 1]; k++) place[run[spans[k]] < 0 ? n : run[spans[k]]] = -1;
    if (runs) made[g] = median(sums.subarray(0, runs)) * runs;
  }
  return made;
}

/** Sorts the list. */
function median(list: Float64Array): number {
  list.sort();
  const half = list.length >> 1;
  return list.length % 2 ? list[half] : (list[half - 1] + list[half]) / 2;
}

const totals = new WeakMap<Profile, number>();
/** What the usual times of all rows add up to: shares are of it. */
export function usualRun(p: Profile): number {
  let made = totals.get(p);
  if (made === undefined) totals.set(p, (made = p.rows.op.reduce((sum, row) => sum + row.usual_ns, 0)));
  return made;
}
