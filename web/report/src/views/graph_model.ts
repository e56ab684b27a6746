// SPDX-License-Identifier: Apache-2.0
// What the graph view draws: the steps of one binding as boxes, or groups of them, joined by the tensors that one makes
// and another reads; inputs and outputs of the model as small boxes of their own.
import * as f from "../format";
import { type Origin, type Profile, type Row, type Step, stepNode, stepNodes, stepTitle, type Tensor, tensorText } from "../profile";
import { type Group, isGroup } from "./graph_groups";

export interface Box {
  kind: "step" | "group" | "input" | "output";
  step: number; // index in the profile; -1: none
  group: Group | null;
  op: string; // gives the colour; "": none
  title: string;
  name: string;
  time: number; // per run; NaN: not known
  share: number;
  roofline: number | null;
  figures: string; // time and share as text
  badge: string; // "3 nodes"
  inside: Origin[]; // drawn inside
  w: number;
  h: number;
}
export interface Link {
  from: number;
  to: number;
  label: string; // shape, or how many tensors
}
export interface Model {
  boxes: Box[];
  links: Link[];
  boxOf: Int32Array; // by step of the profile; -1: not shown
  most: number; // the largest share
  boxOut: number[][]; // links that leave each box
  boxIn: number[][];
}

export interface Options {
  folded: boolean;
  originals: boolean;
  open: ReadonlySet<number>;
}

const BOX_WIDTH = 196;
const BOX_HEIGHT = 62;
export const HEAD = 62; // height of a box above the nodes inside
export const LINE = 18;
export const INSIDE = 12; // nodes drawn in a box at most
const PILLS = 40; // inputs or outputs drawn one by one at most

// ---------------------------------------------------------------- tables
export interface TableInfo {
  table: number;
  steps: number[]; // in the order they run
  time: number; // of its spans
}
interface Facts {
  tables: TableInfo[];
  sharers: Uint32Array; // by row of the table by node: steps that are in it
}
const known = new WeakMap<Profile, Facts>();

function factsOf(p: Profile): Facts {
  const there = known.get(p);
  if (there) return there;
  const tables = new Map<number, TableInfo>();
  const sharers = new Uint32Array(p.rows.node.length);
  const infoOf = p.steps.map((step, i) => {
    let info = tables.get(step.table);
    if (!info) tables.set(step.table, (info = { table: step.table, steps: [], time: 0 }));
    info.steps.push(i);
    if (step.rows[1] >= 0) sharers[step.rows[1]]++;
    return info;
  });
  const { n, step, duration } = p.spans;
  for (let i = 0; i < n; i++) if (step[i] >= 0 && infoOf[step[i]]) infoOf[step[i]].time += duration[i];
  for (const info of tables.values()) info.steps.sort((a, b) => p.steps[a].index - p.steps[b].index);
  const made = { tables: [...tables.values()], sharers };
  known.set(p, made);
  return made;
}

export const tablesOf = (p: Profile): TableInfo[] => factsOf(p).tables;

export function mostTime(tables: TableInfo[]): TableInfo | null {
  let best: TableInfo | null = null;
  for (const info of tables) {
    if (!best || info.time > best.time || (info.time === best.time && info.steps.length > best.steps.length)) best = info;
  }
  return best;
}

/** "binding 1: 120 steps, 1×3×224×224 f32" */
export function tableLabel(p: Profile, info: TableInfo): string {
  const made = new Set(info.steps.flatMap((i) => p.steps[i].outputs.map((t) => t.name)));
  let shape = "";
  for (const i of info.steps) {
    const input = p.steps[i].inputs.find((t) => t.name && !t.constant && !made.has(t.name));
    if (input) {
      shape = `, ${tensorText(input)}`;
      break;
    }
  }
  return f.shorten(f.plain(`binding ${info.table}: ${f.count(info.steps.length)} steps${shape}`), 70);
}

export const rowOf = (p: Profile, step: Step): Row | null => p.rows.node[step.rows[1]] ?? null;
/** How many steps the figures of a step belong to; 1: to it alone. */
export const sharersOf = (p: Profile, step: Step): number => factsOf(p).sharers[step.rows[1]] ?? 1;

// ---------------------------------------------------------------- boxes
function stepBox(p: Profile, index: number, originals: boolean): Box {
  const step = p.steps[index];
  const row = rowOf(p, step);
  const nodes = stepNodes(step);
  const shared = sharersOf(p, step);
  const inside = originals && nodes.length > 1 ? nodes : [];
  const lines = Math.min(inside.length, INSIDE) + (inside.length > INSIDE ? 1 : 0);
  return {
    kind: "step",
    step: index,
    group: null,
    op: step.op,
    title: stepTitle(step),
    name: stepNode(step),
    time: row ? row.mean_ns : NaN,
    share: row ? row.share : 0,
    roofline: row ? row.roofline : null,
    figures: step.folded ? "folded" : row ? `${f.time(row.mean_ns)}  ${f.percent(row.share)}${shared > 1 ? ` (${f.count(shared)} steps)` : ""}` : "not timed",
    badge: step.control ? "bodies" : nodes.length > 1 ? `${f.count(nodes.length)} nodes` : "",
    inside,
    w: BOX_WIDTH,
    h: lines ? HEAD + lines * LINE + 8 : BOX_HEIGHT,
  };
}

function groupBox(p: Profile, group: Group, count: number): Box {
  const rows = new Set<Row>(); // a row counts once, however many steps it has
  for (const i of group.steps) {
    const row = rowOf(p, p.steps[i]);
    if (row) rows.add(row);
  }
  let time = 0;
  let share = 0;
  let longest = -1;
  let op = "";
  for (const row of rows) {
    time += row.mean_ns;
    share += row.share;
    if (row.mean_ns > longest) {
      longest = row.mean_ns;
      op = row.op;
    }
  }
  const title = group.name.split("/").slice(-2).join("/") || "group";
  return {
    kind: "group",
    step: -1,
    group,
    op,
    title,
    name: title !== group.name ? group.name : op && `mostly ${op}`,
    time: rows.size ? time : NaN,
    share,
    roofline: null,
    figures: rows.size ? `${f.time(time)}  ${f.percent(share)}` : "not timed",
    badge: `${f.count(count)} steps`,
    inside: [],
    w: BOX_WIDTH + 12,
    h: BOX_HEIGHT,
  };
}

function pill(kind: "input" | "output", title: string, name: string): Box {
  return {
    kind, step: -1, group: null, op: "", title, name, time: NaN, share: 0, roofline: null, figures: "", badge: "",
    inside: [], w: 132, h: 26,
  };
}

/** Open groups show what is in them; `show` says which steps there are. */
function boxesOf(p: Profile, root: Group, options: Options, boxOf: Int32Array): Box[] {
  const boxes: Box[] = [];
  const shown = (i: number): boolean => options.folded || !p.steps[i].folded;
  const stack: (Group | number)[] = [root];
  while (stack.length) {
    const at = stack.pop() as Group | number;
    if (!isGroup(at)) {
      if (!shown(at)) continue;
      boxOf[at] = boxes.length;
      boxes.push(stepBox(p, at, options.originals));
    } else if (at === root || options.open.has(at.id)) {
      for (let k = at.children.length - 1; k >= 0; k--) stack.push(at.children[k]);
    } else {
      const steps = at.steps.filter(shown);
      if (!steps.length) continue;
      for (const i of steps) boxOf[i] = boxes.length;
      boxes.push(groupBox(p, at, steps.length));
    }
  }
  return boxes;
}

// ---------------------------------------------------------------- links
class Links {
  readonly list: (Link & { tensors: number; tensor: Tensor })[] = [];
  private readonly at = new Map<number, number>();
  private readonly n: number;
  constructor(n: number) {
    this.n = n;
  }
  add(from: number, to: number, tensor: Tensor): void {
    if (from === to) return;
    const key = from * this.n + to;
    const old = this.at.get(key);
    if (old === undefined) {
      this.at.set(key, this.list.length);
      this.list.push({ from, to, label: "", tensor, tensors: 1 });
    } else this.list[old].tensors++;
  }
  done(): Link[] {
    for (const link of this.list) {
      link.label = link.tensors > 1 ? `${f.count(link.tensors)} tensors` : f.shorten(f.plain(tensorText(link.tensor)), 30);
    }
    return this.list;
  }
}

/** Tensors that come from outside or go there, and the boxes that read or make them. */
type Ends = Map<string, { tensor: Tensor; boxes: Set<number> }>;
function meet(ends: Ends, tensor: Tensor, box: number): void {
  const there = ends.get(tensor.name);
  if (there) there.boxes.add(box);
  else ends.set(tensor.name, { tensor, boxes: new Set([box]) });
}

function addPills(kind: "input" | "output", ends: Ends, boxes: Box[], links: Links): void {
  const link = (at: number, box: number, tensor: Tensor): void => (kind === "input" ? links.add(at, box, tensor) : links.add(box, at, tensor));
  if (ends.size <= PILLS) {
    for (const [name, { tensor, boxes: near }] of ends) {
      for (const box of near) link(boxes.length, box, tensor);
      boxes.push(pill(kind, name, tensorText(tensor)));
    }
    return;
  }
  const byBox = new Map<number, Tensor[]>(); // too many: one for all at the same box
  for (const { tensor, boxes: near } of ends.values()) {
    const first = [...near][0];
    const list = byBox.get(first);
    if (list) list.push(tensor);
    else byBox.set(first, [tensor]);
  }
  for (const [box, tensors] of byBox) {
    for (const tensor of tensors) link(boxes.length, box, tensor);
    const one = tensors.length === 1;
    boxes.push(pill(kind, one ? tensors[0].name : `${f.count(tensors.length)} ${kind}s`, one ? tensorText(tensors[0]) : ""));
  }
}

/** What a tensor is known by: its memory, since a view of it has another name. */
const keyOf = (t: Tensor): string => (t.value ? `#${t.value}` : t.name);

export function modelOf(p: Profile, info: TableInfo, root: Group, options: Options): Model {
  const boxOf = new Int32Array(p.steps.length).fill(-1);
  const boxes = boxesOf(p, root, options, boxOf);
  const links = new Links(3 * boxes.length + 2 * PILLS + 1);
  const makers = new Map<string, number>(); // who makes a tensor in the end
  for (const i of info.steps) for (const t of p.steps[i].outputs) if (keyOf(t)) makers.set(keyOf(t), i);
  const sofar = new Map<string, number>();
  const read = new Set<string>();
  const inputs: Ends = new Map();
  const outputs: Ends = new Map();
  for (const i of info.steps) {
    for (const t of p.steps[i].inputs) {
      const key = keyOf(t);
      if (!key || t.constant) continue;
      read.add(key);
      const maker = sofar.get(key) ?? makers.get(key);
      if (boxOf[i] < 0) continue;
      if (maker === undefined) meet(inputs, t, boxOf[i]);
      else if (boxOf[maker] >= 0) links.add(boxOf[maker], boxOf[i], t);
    }
    for (const t of p.steps[i].outputs) if (keyOf(t)) sofar.set(keyOf(t), i);
  }
  const handed = new Set(p.lives.filter((l) => l.table === info.table && l.place === "output").map((l) => l.name));
  for (const i of info.steps) {
    for (const t of p.steps[i].outputs) {
      if (boxOf[i] >= 0 && t.name && (!read.has(keyOf(t)) || handed.has(t.name))) meet(outputs, t, boxOf[i]);
    }
  }
  addPills("input", inputs, boxes, links);
  addPills("output", outputs, boxes, links);
  const list = links.done();
  const boxOut: number[][] = boxes.map(() => []);
  const boxIn: number[][] = boxes.map(() => []);
  list.forEach((link, k) => {
    boxOut[link.from].push(k);
    boxIn[link.to].push(k);
  });
  const most = boxes.reduce((a, b) => Math.max(a, b.share), 0);
  return { boxes, links: list, boxOf, most, boxOut, boxIn };
}
