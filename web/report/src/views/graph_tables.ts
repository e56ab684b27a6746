// SPDX-License-Identifier: Apache-2.0
// The bindings of a profile: which steps each has, which one is the body of a step of another, and what a step with
// bodies takes together with them.
import * as f from "../format";
import { Cat, type Profile, type Row, type Step, stepNode, stepTitle, tensorText } from "../profile";
import { usualRun } from "../usual";

export interface TableInfo {
  table: number;
  steps: number[]; // in the order they run; folded ones last
  ran: number; // how many of them are not folded
  time: number; // of its spans
  owner: number; // the step whose body it is; -1: none
}
interface Facts {
  tables: TableInfo[];
  sharers: Uint32Array; // by row of the table by node: steps that are in it
  within: Float64Array; // by the same: what steps with bodies take together with them, in a run as a rule
  bodies: Map<number, TableInfo[]>; // by step
}
const known = new WeakMap<Profile, Facts>();

function factsOf(p: Profile): Facts {
  const there = known.get(p);
  if (there) return there;
  const tables = new Map<number, TableInfo>();
  const sharers = new Uint32Array(p.rows.node.length);
  const infoOf = p.steps.map((step, i) => {
    let info = tables.get(step.table);
    if (!info) tables.set(step.table, (info = { table: step.table, steps: [], ran: 0, time: 0, owner: -1 }));
    info.steps.push(i);
    if (!step.folded) info.ran++;
    if (step.rows[1] >= 0) sharers[step.rows[1]]++;
    return info;
  });
  for (const info of tables.values()) info.steps.sort((a, b) => p.steps[a].index - p.steps[b].index || a - b);
  const made = { tables: [...tables.values()], sharers, within: new Float64Array(p.rows.node.length), bodies: new Map<number, TableInfo[]>() };
  readSpans(p, infoOf, made);
  addBodies(p, made);
  known.set(p, made);
  return made;
}

/** Sums the spans of steps. A span whose nearest step above it is of another binding belongs to a body of that step. */
function readSpans(p: Profile, infoOf: TableInfo[], made: Facts): void {
  const { n, step, duration, category, parent } = p.spans;
  const above = new Int32Array(n).fill(-1);
  for (let i = 0; i < n; i++) {
    if (parent[i] >= 0) above[i] = step[parent[i]] >= 0 ? step[parent[i]] : above[parent[i]];
    const info = infoOf[step[i]];
    if (!info) continue;
    info.time += duration[i];
    if (category[i] !== Cat.Operator) continue;
    const outer = infoOf[above[i]];
    if (!outer || outer === info) continue;
    if (info.owner < 0) info.owner = above[i];
    const list = made.bodies.get(above[i]);
    if (!list) made.bodies.set(above[i], [info]);
    else if (!list.includes(info)) list.push(info);
  }
}

/** The rows of what runs inside of a step, at any depth. */
function rowsInside(p: Profile, bodies: Map<number, TableInfo[]>, step: number, rows: Set<number>, seen: Set<number>): void {
  if (seen.has(step)) return;
  seen.add(step);
  for (const info of bodies.get(step) ?? []) {
    for (const i of info.steps) {
      if (p.steps[i].rows[1] >= 0) rows.add(p.steps[i].rows[1]);
      rowsInside(p, bodies, i, rows, seen);
    }
  }
}

/** A step with bodies takes what its own row says and what the rows inside say: these add up, as medians of sums do not. */
function addBodies(p: Profile, made: Facts): void {
  const inside = new Map<number, Set<number>>(); // by row: a node that is bound twice has one
  for (const step of made.bodies.keys()) {
    const own = p.steps[step].rows[1];
    if (own < 0) continue;
    let rows = inside.get(own);
    if (!rows) inside.set(own, (rows = new Set([own])));
    rowsInside(p, made.bodies, step, rows, new Set());
  }
  for (const [own, rows] of inside) for (const row of rows) made.within[own] += p.rows.node[row]?.usual_ns ?? 0;
}

export const tablesOf = (p: Profile): TableInfo[] => factsOf(p).tables;
/** The bindings that run inside of a step. */
export const bodiesOf = (p: Profile, step: number): TableInfo[] => factsOf(p).bodies.get(step) ?? [];
/** The step whose body a binding is; -1: it is the model's own. */
export const ownerOf = (p: Profile, table: number): number => tablesOf(p).find((t) => t.table === table)?.owner ?? -1;

/** The model's own graph: of several, for example of several shapes, the one with most time. */
export function mainTable(tables: TableInfo[]): TableInfo | null {
  let best: TableInfo | null = null;
  const better = (a: TableInfo, b: TableInfo): boolean => {
    if (a.owner < 0 !== b.owner < 0) return a.owner < 0;
    return a.time > b.time || (a.time === b.time && a.ran > b.ran);
  };
  for (const info of tables) if (!best || better(info, best)) best = info;
  return best;
}

export const stepCount = (n: number): string => `${f.count(n)} ${n === 1 ? "step" : "steps"}`;

/** "Loop the/loop" */
export const stepLabel = (step: Step, most: number): string => f.shorten(f.plain(`${stepTitle(step)} ${stepNode(step)}`), most);

/** "binding 1: 120 steps, 1×3×224×224 f32"; "binding 4, body of the/loop: 3 steps" */
export function tableLabel(p: Profile, info: TableInfo): string {
  if (info.owner >= 0) return `${bindingName(p, info.table)}: ${stepCount(info.ran)}`;
  const made = new Set(info.steps.flatMap((i) => p.steps[i].outputs.map((t) => t.name)));
  let shape = "";
  for (const i of info.steps) {
    const input = p.steps[i].inputs.find((t) => t.name && !t.constant && !made.has(t.name));
    if (input) {
      shape = `, ${tensorText(input)}`;
      break;
    }
  }
  return f.shorten(f.plain(`${bindingName(p, info.table)}: ${stepCount(info.ran)}${shape}`), 70);
}
export function bindingName(p: Profile, table: number): string {
  const owner = p.steps[ownerOf(p, table)];
  return owner ? `binding ${table}, body of ${f.shorten(f.plain(stepNode(owner)), 30)}` : `binding ${table}`;
}

// ---------------------------------------------------------------- figures
export const rowOf = (p: Profile, step: Step): Row | null => p.rows.node[step.rows[1]] ?? null;
/** How many steps the figures of a step belong to; 1: to it alone. */
export const sharersOf = (p: Profile, step: Step): number => factsOf(p).sharers[step.rows[1]] ?? 1;

/** What a step takes in a run as a rule, with its bodies; null: not timed. */
export function figuresOf(p: Profile, step: Step): { time: number; share: number } | null {
  const row = rowOf(p, step);
  if (!row) return null;
  const whole = step.control ? factsOf(p).within[step.rows[1]] : 0;
  if (!(whole > row.usual_ns)) return { time: row.usual_ns, share: row.usual_share };
  const run = usualRun(p);
  return { time: whole, share: run > 0 ? Math.min(1, whole / run) : row.usual_share };
}
