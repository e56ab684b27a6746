// SPDX-License-Identifier: Apache-2.0
// The run of a profile that is nearest to its median, with its operators.
import { Cat, type Profile, type Step } from "../profile";

export interface Run {
  start: number; // ns, of the profile
  length: number;
  boxes: number[]; // spans of operators in the order of their start
  /** The innermost operator at a time since the start of the run, or one that close; -1: none. */
  at(time: number, near: number): number;
}

/** By this a step is the same in both profiles. */
export const stepKey = (s: Step): string => `${s.op}\u0000${s.post_op}\u0000${s.name || `${s.table}:${s.index}`}`;

export function medianRun(p: Profile): Run | null {
  const { wall, span, n } = p.runs;
  if (!n) return null;
  let best = 0;
  for (let i = 1; i < n; i++) if (Math.abs(wall[i] - p.summary.wall.p50) < Math.abs(wall[best] - p.summary.wall.p50)) best = i;
  const at = span[best];
  const { start, duration } = p.spans;
  const boxes = operatorsIn(p, at);
  const find = (time: number, near: number): number => boxAt(p, boxes, start[at] + time, near);
  return { start: start[at], length: duration[at], boxes, at: find };
}

/** Operators of the same instance between the start and the end of a run: spans come in the order of their start. */
function operatorsIn(p: Profile, run: number): number[] {
  const { n, start, duration, category, instance } = p.spans;
  const end = start[run] + duration[run];
  const boxes: number[] = [];
  for (let i = run + 1; i < n && start[i] < end; i++) {
    if (category[i] === Cat.Operator && instance[i] === instance[run]) boxes.push(i);
  }
  return boxes;
}

const LOOK_BACK = 64; // an operator around others begins before them, but not many of them: bodies are one level

function boxAt(p: Profile, boxes: number[], time: number, near: number): number {
  const { start, duration } = p.spans;
  let low = 0;
  let high = boxes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[boxes[middle]] <= time + near) low = middle + 1;
    else high = middle;
  }
  for (let k = low - 1; k >= 0 && k > low - LOOK_BACK; k--) {
    if (start[boxes[k]] + duration[boxes[k]] >= time - near) return boxes[k];
  }
  return -1;
}
