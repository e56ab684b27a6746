// SPDX-License-Identifier: Apache-2.0
// What belongs to a span elsewhere on the timeline: the span around it, the threads that worked on it, and the
// operators of the same run that read what it makes. Found once per selection.
import { Cat, type Profile } from "../profile";

export interface Flow {
  from: number; // positions of spans
  to: number;
  kind: "parent" | "thread" | "consumer";
}
const MOST = 200; // arrows; more would hide what they show
const FAR = 500_000; // spans looked at behind one whose run has no span of its own

const readers = new WeakMap<Profile, Map<string, number[]>>();
/** Steps that read a tensor of a binding. */
function readersOf(p: Profile): Map<string, number[]> {
  let made = readers.get(p);
  if (made) return made;
  made = new Map();
  for (let k = 0; k < p.steps.length; k++) {
    const step = p.steps[k];
    for (const t of step.inputs) {
      if (!(t.name || t.value) || t.constant) continue;
      const key = `${step.table}\n${t.value ?? t.name}`;
      const list = made.get(key);
      if (list) list.push(k);
      else made.set(key, [k]);
    }
  }
  readers.set(p, made);
  return made;
}

export function consumers(p: Profile, index: number): Set<number> {
  const step = p.steps[index];
  const found = new Set<number>();
  for (const t of step?.outputs ?? []) {
    for (const k of t.name || t.value ? (readersOf(p).get(`${step.table}\n${t.value ?? t.name}`) ?? []) : []) if (k !== index) found.add(k);
  }
  return found;
}

/** Where the run of a span ends. */
function runEnd(p: Profile, i: number): number {
  const s = p.spans;
  for (let at = s.parent[i]; at >= 0; at = s.parent[at]) {
    if (s.category[at] === Cat.Iteration) return s.start[at] + s.duration[at];
  }
  return Infinity;
}

export function flowsOf(p: Profile, i: number): Flow[] {
  const s = p.spans;
  if (i < 0) return [];
  const flows: Flow[] = [];
  if (s.parent[i] >= 0) flows.push({ from: s.parent[i], to: i, kind: s.category[i] === Cat.Thread ? "thread" : "parent" });
  if (s.category[i] !== Cat.Operator || s.step[i] < 0) return flows;
  const end = s.start[i] + s.duration[i];
  for (let j = i + 1; j < s.n && s.start[j] <= end && flows.length < MOST; j++) {
    const share = s.category[j] === Cat.Thread && s.step[j] === s.step[i] && s.run[j] === s.run[i] && s.instance[j] === s.instance[i];
    if (share) flows.push({ from: i, to: j, kind: "thread" });
  }
  const wanted = consumers(p, s.step[i]);
  const until = runEnd(p, i);
  const last = until === Infinity ? Math.min(s.n, i + FAR) : s.n;
  for (let j = i + 1; j < last && s.start[j] <= until && wanted.size && flows.length < MOST; j++) {
    const reads = s.category[j] === Cat.Operator && s.run[j] === s.run[i] && s.start[j] >= end && wanted.delete(s.step[j]);
    if (reads) flows.push({ from: i, to: j, kind: "consumer" });
  }
  return flows;
}
