// SPDX-License-Identifier: Apache-2.0
// The timeline's search: spans whose name, node or kernel has the text. Texts are compared once each, not per span.
import { type Profile, stepNodes } from "../profile";

const lowered = new WeakMap<Profile, { names: string[]; steps: string[] }>();

function words(p: Profile): { names: string[]; steps: string[] } {
  let made = lowered.get(p);
  if (!made) {
    made = {
      names: p.strings.map((text) => text.toLowerCase()),
      steps: p.steps.map((step) =>
        [step.op, step.post_op, step.name, step.kernel, ...stepNodes(step).map((o) => o.name)].join("\n").toLowerCase(),
      ),
    };
    lowered.set(p, made);
  }
  return made;
}

/** Positions of the spans that match, in order; null: nothing is looked for. */
export function find(p: Profile, text: string): Uint32Array | null {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const { names, steps } = words(p);
  const name = Uint8Array.from(names, (v) => (v.includes(wanted) ? 1 : 0));
  const step = Uint8Array.from(steps, (v) => (v.includes(wanted) ? 1 : 0));
  const s = p.spans;
  const found = new Uint32Array(s.n);
  let n = 0;
  for (let i = 0; i < s.n; i++) if (name[s.name[i]] || (s.step[i] >= 0 && step[s.step[i]])) found[n++] = i;
  return found.slice(0, n);
}

const byStep = new WeakMap<Profile, { first: Uint32Array; spans: Uint32Array }>();
/** The spans of every step, one list behind the other: a selection then looks at no others. */
function spansByStep(p: Profile): { first: Uint32Array; spans: Uint32Array } {
  let made = byStep.get(p);
  if (made) return made;
  const { step, n } = p.spans;
  const steps = p.steps.length;
  const first = new Uint32Array(steps + 1);
  for (let i = 0; i < n; i++) if (step[i] >= 0 && step[i] < steps) first[step[i] + 1]++;
  for (let k = 0; k < steps; k++) first[k + 1] += first[k];
  const spans = new Uint32Array(first[steps]);
  const at = first.slice();
  for (let i = 0; i < n; i++) if (step[i] >= 0 && step[i] < steps) spans[at[step[i]]++] = i;
  byStep.set(p, (made = { first, spans }));
  return made;
}

/** Positions of the spans of some steps, in order. */
export function spansOf(p: Profile, steps: ReadonlySet<number>): Uint32Array {
  const { first, spans } = spansByStep(p);
  const lists = [...steps].map((k) => spans.subarray(first[k], first[k + 1]));
  if (lists.length === 1) return lists[0];
  const all = new Uint32Array(lists.reduce((n, list) => n + list.length, 0));
  let at = 0;
  if (all.length * 16 > p.spans.n) {
    // So many that looking at every span is faster than sorting.
    const wanted = new Uint8Array(p.steps.length);
    for (const k of steps) wanted[k] = 1;
    for (let i = 0; at < all.length; i++) if (p.spans.step[i] >= 0 && wanted[p.spans.step[i]]) all[at++] = i;
    return all;
  }
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  return all.sort();
}

/** The place of the first position in a sorted list that is `from` or later. */
export function placeOf(list: Uint32Array, from: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (list[mid] < from) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** The position of the first span that begins at `t` or later. */
export function firstFrom(start: Float64Array, t: number): number {
  let low = 0;
  let high = start.length;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (start[mid] < t) low = mid + 1;
    else high = mid;
  }
  return low;
}
