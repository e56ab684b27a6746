// SPDX-License-Identifier: Apache-2.0
// The rows of a comparison as a table, and which row of the profile that is shown each one belongs to.
import * as f from "../format";
import { nodesText } from "../names";
import { type Change, type Profile, ROW_KEYS } from "../profile";
import type { Page } from "../state";
import { Table } from "../table";
import { signed, VERDICTS, verdictText } from "./compare_words";

export type By = "op" | "node" | "shape";

export interface Finder {
  (by: By, row: Change): number; // -1: the profile has none
  chosen(by: By, row: Change): boolean;
  mark(): void; // after the selection changed
}

const joined = (...parts: string[]): string => parts.join("\u0000");

/** Texts by which a comparison may name a row of the profile; nodes by their own name or by all they stand for. */
function keysOf(p: Profile, by: By, index: number): string[] {
  const row = p.rows[by][index];
  if (by === "op") return [row.name];
  if (by === "shape") return [joined(row.name, row.op)];
  const step = row.step >= 0 ? p.steps[row.step]?.name : undefined;
  return [joined(row.name, row.node), joined(row.name, step ?? row.node)];
}

export function rowFinder(page: Page): Finder {
  const p = page.profile;
  const maps = new Map<By, Map<string, number>>();
  const mapOf = (by: By): Map<string, number> => {
    let map = maps.get(by);
    if (map) return map;
    maps.set(by, (map = new Map()));
    for (let i = 0; i < p.rows[by].length; i++) for (const key of keysOf(p, by, i)) if (!map.has(key)) map.set(key, i);
    return map;
  };
  const chosen = new Map<By, Set<number>>();
  const mark = (): void => {
    chosen.clear();
    for (const by of ["op", "node", "shape"] as const) {
      const k = ROW_KEYS.indexOf(by);
      const rows = new Set([...page.selection.steps].map((step) => p.steps[step].rows[k]));
      if (page.selection.kind === by) rows.add(page.selection.index);
      chosen.set(by, rows);
    }
  };
  mark();
  const find = (by: By, row: Change): number => mapOf(by).get(by === "op" ? row.name : joined(row.name, by === "shape" ? row.op : row.node)) ?? -1;
  return Object.assign(find, { mark, chosen: (by: By, row: Change) => chosen.get(by)?.has(find(by, row)) ?? false });
}

const interval = (row: Change): string =>
  row.low !== null && row.high !== null && row.low > 0 && Number.isFinite(row.high) ? `${f.change(row.low)} … ${f.change(row.high)}` : "";
const both = (row: Change): boolean => row.verdict !== "new" && row.verdict !== "gone";
/** A ratio needs time on both sides: from 0 to something is no percentage. */
const comparable = (row: Change): boolean => both(row) && row.old_median_ns > 0 && row.new_median_ns > 0;

export function changeTable(page: Page, by: By, rows: Change[], total: Change, find: Finder, choose: (row: Change) => void): Table<Change> {
  const asked = page.params.get("sort") ?? ""; // unless told, the largest difference first, whatever its sign
  const size = (row: Change): number => Math.abs(row.new_median_ns - row.old_median_ns);
  const titles: Record<By, string> = { op: "Type", node: "Operator", shape: "Shapes of the inputs" };
  return new Table<Change>({
    name: `comparison by ${by === "op" ? "type" : by}`,
    columns: [
      { id: "name", title: titles[by], text: (row) => (row === total ? "Whole run" : row.name), width: "minmax(9rem, 1fr)" },
      ...(by === "op" ? [] : [by === "node" ? { id: "node", title: "Nodes", name: (row: Change) => nodesText(row.node), text: (row: Change) => row.node, width: "minmax(9rem, 1.5fr)" } : { id: "op", title: "Type", text: (row: Change) => row.op, width: "8rem" }]),
      { id: "old", title: "Before", hint: "Median per run", unit: "ns", number: true, text: (row) => (row.verdict === "new" ? "" : f.time(row.old_median_ns)), value: (row) => row.old_median_ns },
      { id: "new", title: "After", hint: "Median per run", unit: "ns", number: true, text: (row) => (row.verdict === "gone" ? "" : f.time(row.new_median_ns)), value: (row) => row.new_median_ns },
      { id: "difference", title: "Difference", hint: "Of the medians", unit: "ns", number: true, text: (row) => signed(row.new_median_ns - row.old_median_ns), value: (row) => row.new_median_ns - row.old_median_ns },
      { id: "change", title: "Change", hint: "Of the medians", unit: "ratio", number: true, text: (row) => (comparable(row) ? f.change(row.ratio) : ""), value: (row) => (comparable(row) ? row.ratio : null), cell: (row) => VERDICTS[row.verdict]?.color ?? "" },
      { id: "interval", title: "95 % interval", text: interval, width: "10.5rem" },
      { id: "verdict", title: "Verdict", text: (row) => verdictText(row.verdict), cell: (row) => VERDICTS[row.verdict]?.color ?? "", width: "7rem" },
      { id: "p", title: "p", hint: "Probability of such a difference by chance", number: true, text: (row) => (both(row) ? (row.p < 0.0001 ? "< 0.0001" : f.digits(row.p)) : ""), value: (row) => row.p, width: "6rem" },
    ],
    first: total,
    rows: [...rows].sort((a, b) => size(b) - size(a)),
    sort: { column: asked.replace(/^-/, ""), down: asked.startsWith("-") },
    words: (row) => `${row.name} ${row.op} ${row.node} ${row.verdict}`,
    choose,
    act: () => page.go("timeline"),
    chosen: (row) => find.chosen(by, row),
    sorted: (id, down) => page.set("sort", `${down ? "-" : ""}${id}`),
    filter: page.params.get("filter") ?? "",
    filtered: (text) => page.set("filter", text || null),
  });
}
