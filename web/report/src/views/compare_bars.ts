// SPDX-License-Identifier: Apache-2.0
// Time gained and lost per row as bars to both sides of zero. They add up to the change of the mean: what is within
// noise or too small to show stands together in one bar.
import { type BarRow, barRows, brief } from "../chart";
import type { Theme } from "../colors";
import * as f from "../format";
import type { Change } from "../profile";
import type { By } from "./compare_table";
import { isNoise, signed, signedMark, verdictText } from "./compare_words";

const SHOWN = 20;
const title = (by: By, row: Change): string => (by === "node" ? `${row.name} ${row.node}` : by === "shape" ? `${row.op} ${row.name}` : row.name);
const delta = (row: Change): number => row.new_ns - row.old_ns;
const sum = (rows: Change[]): number => rows.reduce((total, row) => total + delta(row), 0);

export function drawChanges(svg: SVGSVGElement, width: number, t: Theme, by: By, rows: Change[], total: Change, noise: boolean, chosen: (row: Change) => boolean, pick: (row: Change) => void): number {
  const sorted = [...rows].sort((a, b) => Math.abs(delta(b)) - Math.abs(delta(a)));
  const loud = noise ? sorted : sorted.filter((row) => !isNoise(row));
  const quiet = noise ? [] : sorted.filter(isNoise);
  const shown = loud.slice(0, SHOWN);
  const rest = loud.slice(SHOWN);
  const color = (ns: number): string => (ns > 0 ? t.bad : t.good);
  const bars: BarRow[] = shown.map((row, i) => ({
    key: `change-${i}`,
    name: title(by, row),
    from: 0,
    to: delta(row),
    text: signed(delta(row)),
    fill: isNoise(row) ? t.grey : color(delta(row)),
    lines: [brief(title(by, row), 120), `${signed(delta(row))} per run: ${f.time(row.old_ns)} before, ${f.time(row.new_ns)} after`, verdictText(row.verdict)],
    chosen: chosen(row),
    pick: () => pick(row),
  }));
  const together = (name: string, list: Change[]): void => {
    if (!list.length) return;
    const ns = sum(list);
    bars.push({ key: name, name, from: 0, to: ns, text: signed(ns), fill: t.grey, lines: [name, `together ${signed(ns)}`] });
  };
  together(`${f.count(rest.length)} smaller ${rest.length === 1 ? "change" : "changes"}`, rest);
  together(`unchanged or noise (${f.count(quiet.length)} ${quiet.length === 1 ? "row" : "rows"})`, quiet);
  const whole = delta(total);
  bars.push({ key: "total", name: "Whole run", from: 0, to: whole, text: signed(whole), fill: t.ink, lines: ["Change of the mean of a run", signed(whole)], strong: true });
  const low = bars.reduce((least, bar) => Math.min(least, bar.to), 0);
  const high = bars.reduce((most, bar) => Math.max(most, bar.to), 0);
  return barRows(svg, width, t, bars, { low, high: high > low ? high : low + 1, ...(high > low ? { axis: signedMark } : {}) });
}
