// SPDX-License-Identifier: Apache-2.0
// The parts of a training step: forward, backward, optimiser. A model that trains says so in the names of its nodes
// (exporters of gradients write "grad", optimisers their own name or operator) or in scopes around its runs.
import { Cat, isWarmup, type Profile, type Step } from "./profile";
import { runsOf, usualSums } from "./usual";

export const PHASES = ["Forward", "Backward", "Optimiser"] as const;
export type Phase = (typeof PHASES)[number];

const OPTIMISERS = /^(Adam|AdamW|Adagrad|Momentum|SGD|Lamb|RMSprop|InPlaceAccumulator)/i;
const OPTIMISER_NAME = /(^|[/._ ])(optim(izer|iser)?|adamw?|sgd|momentum)([/._# ]|$)/i;
const BACKWARD_NAME = /(^|[/._ ])(grad|gradients?|backward|bwd)([/._# ]|$)|Grad(_|$)/i;
const FORWARD_NAME = /(^|[/._ ])(forward|fwd)([/._# ]|$)/i;

export function phaseOf(step: Step): Phase {
  const own = step.origins[0]?.name || step.name;
  if (OPTIMISERS.test(step.op) || OPTIMISER_NAME.test(own)) return "Optimiser";
  return BACKWARD_NAME.test(own) || /Grad$/.test(step.op) ? "Backward" : "Forward";
}

export interface PhaseTime {
  phase: Phase;
  ns: number; // of a run, as a rule
  steps: number; // that run; 0: the time is that of scopes
}

/** null: nothing tells that this is a training step. */
export function phasesOf(p: Profile): PhaseTime[] | null {
  return byScopes(p) ?? bySteps(p);
}

function bySteps(p: Profile): PhaseTime[] | null {
  const made = PHASES.map((phase) => ({ phase, ns: 0, steps: 0 }));
  for (const row of p.rows.node) {
    if (row.bracket || row.step < 0 || !(row.usual_ns > 0)) continue;
    const at = made[PHASES.indexOf(phaseOf(p.steps[row.step]))];
    at.ns += row.usual_ns;
    at.steps += row.calls;
  }
  return made[1].ns > 0 ? made.filter(({ ns }) => ns > 0) : null;
}

/** Scopes of a program that calls its parts by these names; only the outermost count. */
function byScopes(p: Profile): PhaseTime[] | null {
  const { n, category, parent, duration } = p.spans;
  const group = new Int32Array(n).fill(-1);
  const within = new Uint8Array(n);
  const kinds = p.strings.map((name) => (FORWARD_NAME.test(name) ? 1 : BACKWARD_NAME.test(name) ? 2 : OPTIMISER_NAME.test(name) ? 3 : 0));
  for (let i = 0; i < n; i++) {
    const up = parent[i] >= 0 ? within[parent[i]] : 0;
    const kind = category[i] === Cat.User && !isWarmup(p, i) ? kinds[p.spans.name[i]] : 0;
    if (kind && !up) group[i] = kind - 1;
    within[i] = up || kind;
  }
  if (!group.includes(0) || !group.includes(1)) return null;
  const run = runsOf(p, (i) => parent[i]).map((at, i) => (at < 0 ? i : at)); // a scope around runs counts by itself
  const sums = usualSums(PHASES.length, group, run, duration);
  const runs = Math.max(1, p.summary.iterations);
  return PHASES.map((phase, k) => ({ phase, ns: sums[k] / runs, steps: 0 })).filter(({ ns }) => ns > 0);
}
