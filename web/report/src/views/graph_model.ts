// SPDX-License-Identifier: Apache-2.0
// What the graph view draws: the steps of one binding as boxes, or groups of them, joined by the tensors that one makes
// and another reads; inputs and outputs of the model as small boxes of their own.
import * as f from "../format";
import { type Origin, type Port, type Profile, type Row, type Step, stepNode, stepNodes, stepTitle, type Tensor, tensorText } from "../profile";
import { type Group, isGroup } from "./graph_groups";
import { figuresOf, rowOf, sharersOf, stepCount, type TableInfo } from "./graph_tables";

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
const PILLS = 6; // inputs or outputs drawn one by one at most; of more, those of the same boxes are drawn as one
const MOST_PILLS = 40; // of those; of still more, one at each box

// ---------------------------------------------------------------- boxes
function stepBox(p: Profile, index: number, originals: boolean): Box {
  const step = p.steps[index];
  const row = rowOf(p, step);
  const took = figuresOf(p, step);
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
    time: took ? took.time : NaN,
    share: took ? took.share : 0,
    roofline: row ? row.roofline : null,
    figures: step.folded ? "folded" : took ? `${f.time(took.time)}  ${f.percent(took.share)}${shared > 1 ? ` (${f.count(shared)} steps)` : ""}` : "not timed",
    badge: step.control ? "with its bodies" : nodes.length > 1 ? `${f.count(nodes.length)} nodes` : "",
    inside,
    w: step.control ? BOX_WIDTH + 24 : BOX_WIDTH,
    h: lines ? HEAD + lines * LINE + 8 : BOX_HEIGHT,
  };
}

function groupBox(p: Profile, group: Group, count: number): Box {
  const rows = new Map<Row, Step>(); // a row counts once, however many steps it has
  for (const i of group.steps) {
    const row = rowOf(p, p.steps[i]);
    if (row) rows.set(row, p.steps[i]);
  }
  let time = 0;
  let share = 0;
  let longest = -1;
  let op = "";
  for (const [row, step] of rows) {
    const took = figuresOf(p, step) ?? { time: 0, share: 0 };
    time += took.time;
    share += took.share;
    if (took.time > longest) {
      longest = took.time;
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
    badge: stepCount(count),
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

/** Tensors that come from outside or go there, by their names there, and the boxes that read or make them. */
type Ends = Map<string, { tensor: Tensor; boxes: Set<number> }>;
function meet(ends: Ends, name: string, tensor: Tensor, box: number): void {
  const there = ends.get(name);
  if (there) there.boxes.add(box);
  else ends.set(name, { tensor, boxes: new Set([box]) });
}

interface Bundle {
  names: string[];
  tensors: Tensor[];
  boxes: ReadonlySet<number>;
}
/** Ends that are drawn as one: each alone, or all of the same boxes, or all whose first box is the same. */
function bundles(ends: Ends): Bundle[] {
  const by = (key: (name: string, near: ReadonlySet<number>) => string, boxes: (near: ReadonlySet<number>) => ReadonlySet<number>): Bundle[] => {
    const all = new Map<string, Bundle>();
    for (const [name, { tensor, boxes: near }] of ends) {
      const id = key(name, near);
      let one = all.get(id);
      if (!one) all.set(id, (one = { names: [], tensors: [], boxes: boxes(near) }));
      one.names.push(name);
      one.tensors.push(tensor);
    }
    return [...all.values()];
  };
  if (ends.size <= PILLS) return by((name) => name, (near) => near);
  const same = by((_, near) => [...near].join(), (near) => near);
  if (same.length <= MOST_PILLS) return same;
  const first = (near: ReadonlySet<number>): number => near.values().next().value ?? -1;
  return by((_, near) => String(first(near)), (near) => new Set([first(near)]));
}

function addPills(kind: "input" | "output", ends: Ends, boxes: Box[], links: Links): void {
  for (const { names, tensors, boxes: near } of bundles(ends)) {
    const at = boxes.length;
    for (const box of near) for (const tensor of tensors) kind === "input" ? links.add(at, box, tensor) : links.add(box, at, tensor);
    const one = names.length === 1;
    boxes.push(pill(kind, one ? names[0] : `${f.count(names.length)} ${kind}s`, one ? tensorText(tensors[0]) : names.slice(0, 6).join(", ")));
  }
}

/** What a tensor is known by: its memory, since a view of it has another name. */
const keyOf = (t: Tensor): string => (t.value ? `#${t.value}` : t.name);

/** By value: the names of the inputs or outputs of a binding; null: the profile does not tell them. */
function portsOf(p: Profile, table: number, output: boolean): Map<number, string[]> | null {
  const own = (p.ports ?? []).filter((port: Port) => port.table === table);
  if (!own.length) return null;
  const ports = new Map<number, string[]>();
  for (const port of own) {
    if (Boolean(port.output) !== output) continue;
    const names = ports.get(port.value);
    if (names) names.push(port.name);
    else ports.set(port.value, [port.name]);
  }
  return ports;
}

/** What a tensor that no step makes is called outside; none: it was computed when the model was loaded. */
function inputNames(t: Tensor, ports: Map<number, string[]> | null): string[] {
  return ports && t.value ? (ports.get(t.value) ?? []).slice(0, 1) : [t.name];
}

export function modelOf(p: Profile, info: TableInfo, root: Group, options: Options): Model {
  const boxOf = new Int32Array(p.steps.length).fill(-1);
  const boxes = boxesOf(p, root, options, boxOf);
  const links = new Links(3 * boxes.length + 2 * MOST_PILLS + 1);
  const makers = new Map<string, number>(); // who makes a tensor in the end
  for (const i of info.steps) for (const t of p.steps[i].outputs) if (keyOf(t)) makers.set(keyOf(t), i);
  const ports = portsOf(p, info.table, false);
  const sofar = new Map<string, number>();
  const read = new Set<string>();
  const inputs: Ends = new Map();
  for (const i of info.steps) {
    for (const t of p.steps[i].inputs) {
      const key = keyOf(t);
      if (!key || t.constant) continue;
      read.add(key);
      const maker = sofar.get(key) ?? makers.get(key);
      if (boxOf[i] < 0) continue;
      if (maker === undefined) for (const name of inputNames(t, ports)) meet(inputs, name, t, boxOf[i]);
      else if (boxOf[maker] >= 0) links.add(boxOf[maker], boxOf[i], t);
    }
    for (const t of p.steps[i].outputs) if (keyOf(t)) sofar.set(keyOf(t), i);
  }
  addPills("input", inputs, boxes, links);
  addPills("output", outputsOf(p, info, boxOf, makers, read), boxes, links);
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

/** The model's outputs as the profile names them; where it names none, what nobody reads or what is handed to the caller. */
function outputsOf(p: Profile, info: TableInfo, boxOf: Int32Array, makers: Map<string, number>, read: Set<string>): Ends {
  const ends: Ends = new Map();
  const ports = portsOf(p, info.table, true);
  const handed = new Set(p.lives.filter((l) => l.table === info.table && l.place === "output").map((l) => l.name));
  const namesOf = (t: Tensor, i: number): string[] => {
    if (ports) return t.value && makers.get(keyOf(t)) === i ? (ports.get(t.value) ?? []) : [];
    return t.name && (!read.has(keyOf(t)) || handed.has(t.name)) ? [t.name] : [];
  };
  for (const i of info.steps) {
    if (boxOf[i] < 0) continue;
    for (const t of p.steps[i].outputs) for (const name of namesOf(t, i)) meet(ends, name, t, boxOf[i]);
  }
  return ends;
}
