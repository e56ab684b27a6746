// SPDX-License-Identifier: Apache-2.0
// The parts of a training step, one behind the other.
import { type BarRow, barRows, type Chart, type Charts } from "../chart";
import { categoryColor } from "../colors";
import * as f from "../format";
import { type PhaseTime, phasesOf } from "../phases";
import { Cat, type Profile } from "../profile";

/** null: the profile is not one of training. */
export function phaseChart(charts: Charts, p: Profile): Chart | null {
  const phases = phasesOf(p);
  if (!phases) return null;
  const whole = Math.max(p.summary.wall.p50, phases.reduce((sum, x) => sum + x.ns, 0)) || 1;
  return charts.add(`Parts of the training step: ${phases.map((x) => `${x.phase} ${f.time(x.ns)}`).join(", ")}.`, true, (svg, width, t) =>
    barRows(svg, width, t, rows(phases, whole, t.dark), { low: 0, high: whole, axis: f.mark }),
  );
}

function rows(phases: PhaseTime[], whole: number, dark: boolean): BarRow[] {
  let from = 0;
  return phases.map(({ phase, ns, steps }) => {
    const row = {
      key: `phase-${phase}`,
      name: phase,
      from,
      to: from + ns,
      text: `${f.time(ns)}  ${f.percent(ns / whole)}`,
      fill: categoryColor(Cat.Operator, dark),
      lines: [phase, `${f.time(ns)}, ${f.percent(ns / whole)} of a training step`, steps ? `${f.count(Math.round(steps))} steps` : "by the scopes of the program"],
    };
    from += ns;
    return row;
  });
}
