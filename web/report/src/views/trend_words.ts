// SPDX-License-Identifier: Apache-2.0
// What is said of the entries of a trend: dates, commits, the command that compares two of them.
import { brief } from "../chart";
import * as f from "../format";
import type { Trend, TrendPoint } from "../profile";

const NS = 1e6; // values are milliseconds

export const timeOf = (ms: number): string => f.time(ms * NS);
export const isShown = (v: number | undefined): v is number => typeof v === "number" && Number.isFinite(v) && v >= 0;
export const hasInterval = (p: TrendPoint): boolean => isShown(p.low_ms) && isShown(p.high_ms) && p.high_ms > p.low_ms;

/** "2026-03-01", with `clock` "2026-03-01 14:05 UTC"; "" where it is not known. */
export function dateOf(p: TrendPoint, clock = false): string {
  const date = new Date(p.at_unix_ms ?? NaN);
  if (!p.at_unix_ms || Number.isNaN(date.getTime())) return "";
  const text = date.toISOString().replace(/^\+0*/, "");
  return clock ? `${text.slice(0, -8).replace("T", " ")} UTC` : text.split("T")[0];
}
/** As Git shortens it; other names stay as they are. */
export const commitOf = (p: TrendPoint): string => (p.commit ? (/^[0-9a-f]{12,64}$/.test(p.commit) ? p.commit.slice(0, 10) : brief(p.commit, 24)) : "");

/** Where points differ, the one it is, with `before` in front. */
export const whichOf = (p: TrendPoint, before = ""): string => (p.which ? before + brief(p.which, 60) : "");

/** "slower by 5.2 %" */
export function changeText(ratio: number | undefined): string {
  if (ratio === undefined || !Number.isFinite(ratio) || ratio <= 0) return "another level";
  return `${ratio > 1 ? "slower" : "faster"} by ${f.percent(Math.abs(ratio - 1))}`;
}
/** The mark of a change in a chart: its sign and its direction, so colour only repeats it. */
export function changeMark(ratio: number | undefined): string {
  if (ratio === undefined || !Number.isFinite(ratio) || ratio <= 0) return "◆";
  return `${ratio > 1 ? "▲" : "▼"} ${f.change(ratio)}`;
}
export const changeColor = (ratio: number | undefined): "bad" | "good" | "ink" => (!ratio || !Number.isFinite(ratio) || ratio <= 0 ? "ink" : ratio > 1 ? "bad" : "good");

/** One entry as lines; the first is its value. */
export function linesOf(p: TrendPoint): string[] {
  const lines = [isShown(p.value_ms) ? timeOf(p.value_ms) : "no value"];
  if (hasInterval(p)) lines.push(`95 % interval ${timeOf(p.low_ms as number)} … ${timeOf(p.high_ms as number)}`);
  const where = [`entry ${p.id}`, commitOf(p) && `commit ${commitOf(p)}`, dateOf(p, true)].filter(Boolean);
  lines.push(where.join(", "));
  if (p.which) lines.push(brief(p.which, 120));
  if (p.note) lines.push(brief(p.note, 120));
  if (p.change) lines.push(`From here on ${changeText(p.ratio)}`);
  return lines;
}

/** Position of the last change; -1: there is none. */
export function lastChange({ points }: Trend): number {
  let i = points.length - 1;
  while (i >= 0 && !points[i].change) i--;
  return i;
}
/** Positions of the entries on both sides of the last change; of none the last two. */
export function lastPair(t: Trend): [number, number] | null {
  const { points } = t;
  if (points.length < 2) return null;
  const change = lastChange(t);
  return change > 0 ? [change - 1, change] : [points.length - 2, points.length - 1];
}
/** One word of a shell's command. A name that begins as options do is no option with a folder in front. */
function shellWord(path: string): string {
  const word = path.startsWith("-") ? `./${path}` : path;
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${f.plain(word).replaceAll("'", `'\\''`)}'`;
}
export const diffCommand = ({ db }: Trend, a: TrendPoint, b: TrendPoint): string => `sonde history diff ${a.id} ${b.id}${db ? ` --db ${shellWord(db)}` : ""}`;

/** Median of the level that a position lies in; NaN: in none. */
export function levelAt(t: Trend, i: number): number {
  const level = t.levels.find(({ from, to }) => from <= i && i < to);
  return level ? level.value_ms : NaN;
}

/** The whole story in a sentence. */
export function sentenceOf(t: Trend): string {
  const { points } = t;
  if (!points.length) return "There is no entry yet.";
  const changes = points.filter((p) => p.change).length;
  const many = `${f.count(points.length)} ${points.length === 1 ? "entry" : "entries"}`;
  const last = points.length - 1;
  const level = levelAt(t, last);
  const now = isShown(level) ? `, now at ${timeOf(level)}` : "";
  if (!changes) return `${many}${now}, without a change that noise does not explain.`;
  const at = lastChange(t);
  const since = [commitOf(points[at]) && `commit ${commitOf(points[at])}`, dateOf(points[at])].filter(Boolean).join(" of ");
  return `${many}${now}: ${changeText(points[at].ratio)} since ${since || `entry ${points[at].id}`}${whichOf(points[at], ", ")}${changes > 1 ? `, the last of ${f.count(changes)} changes` : ""}.`;
}
