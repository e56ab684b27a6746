// SPDX-License-Identifier: Apache-2.0
// The spans of the measured runs merged by the path of their names: what the flame graph draws. An operator is two
// frames, its type and its node; the threads that worked on it are inside. A frame is as wide as it usually takes, so
// that one slow run does not widen it. Frames are numbers, and a frame's parent has a smaller one, so every sum over the
// tree is one loop.
import { lanesOf } from "../lanes";
import { Cat, type Profile, stepNode, stepTitle, WARMUP } from "../profile";
import { OUTSIDE, runsOf, usualSums } from "../usual";

export const ROOT = 0;
export const BETWEEN = "[between operators]";

export interface Tree {
  n: number; // frames; number 0 is the root
  parent: Int32Array;
  name: Int32Array; // into names
  names: string[];
  step: Int32Array; // the first one; -1: none
  kind: Uint8Array; // its category, or one of the kinds below
  calls: Float64Array; // over all runs
  total: Float64Array; // the usual ns of a run, times runs
  width: Float64Array; // ns as drawn: threads side by side share the width of their operator
  self: Float64Array; // ns of `width` that no frame inside takes
  children: Int32Array; // of all frames, one behind the other, in order of their first occurrence
  first: Int32Array; // per frame: where its children begin; n + 1 entries
  runs: number; // that were measured
}
export const KIND_TYPE = 16; // an operator type
export const KIND_GAP = 17;
export const KIND_ROOT = 18;

/** Pairs of numbers to a number: open addressing, as a Map of pairs is too slow for millions of look-ups. */
export class Pairs {
  private size = 1 << 12;
  private count = 0;
  private a = new Int32Array(this.size);
  private b = new Int32Array(this.size);
  private v = new Int32Array(this.size).fill(-1);

  /** What is stored for a pair, or `fresh` after storing it. */
  get(a: number, b: number, fresh: number): number {
    if (this.count * 2 > this.size) this.grow();
    const k = this.place(a, b);
    if (this.v[k] >= 0) return this.v[k];
    this.a[k] = a;
    this.b[k] = b;
    this.v[k] = fresh;
    this.count++;
    return fresh;
  }
  private place(a: number, b: number): number {
    const mask = this.size - 1;
    let k = (Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b)) >>> 0;
    k = (k ^ (k >>> 15)) & mask;
    while (this.v[k] >= 0 && (this.a[k] !== a || this.b[k] !== b)) k = (k + 1) & mask;
    return k;
  }
  private grow(): void {
    const { a, b, v, size } = this;
    this.size *= 2;
    this.a = new Int32Array(this.size);
    this.b = new Int32Array(this.size);
    this.v = new Int32Array(this.size).fill(-1);
    for (let i = 0; i < size; i++) {
      if (v[i] < 0) continue;
      const k = this.place(a[i], b[i]);
      this.a[k] = a[i];
      this.b[k] = b[i];
      this.v[k] = v[i];
    }
  }
}

/** Names that are no strings of the profile: operator types, nodes, threads. */
class Names {
  readonly all: string[];
  private readonly made = new Map<string, number>();
  constructor(strings: string[]) {
    this.all = strings.slice();
  }
  of(text: string): number {
    let k = this.made.get(text);
    if (k === undefined) {
      k = this.all.length;
      this.all.push(text);
      this.made.set(text, k);
    }
    return k;
  }
}

class Builder {
  private readonly p: Profile;
  readonly names: Names;
  private readonly pairs = new Pairs();
  readonly parent: number[] = [-1];
  readonly name: number[];
  readonly step: number[] = [-1];
  readonly kind: number[] = [KIND_ROOT];
  readonly calls: number[] = [0];
  readonly total: number[] = [0];
  private readonly types: Int32Array; // per step
  private readonly nodes: Int32Array;
  private readonly iteration: number;
  private readonly threads: number[];

  constructor(p: Profile) {
    this.p = p;
    const names = (this.names = new Names(p.strings));
    this.name = [names.of("all runs")];
    this.types = Int32Array.from(p.steps, (step) => names.of(stepTitle(step)));
    this.nodes = Int32Array.from(p.steps, (step) => names.of(stepNode(step)));
    this.iteration = names.of("Iteration");
    this.threads = p.threads.map((t, k) => names.of(`on ${t.name || `thread ${k}`}`));
  }

  frame(parent: number, name: number, kind: number, step: number): number {
    const k = this.pairs.get(parent, name, this.parent.length);
    if (k === this.parent.length) {
      this.parent.push(parent);
      this.name.push(name);
      this.kind.push(kind);
      this.step.push(step);
      this.calls.push(0);
      this.total.push(0);
    }
    return k;
  }
  private add(frame: number, ns: number): void {
    this.calls[frame]++;
    this.total[frame] += ns;
  }

  /** Adds a span below a frame and returns its own. */
  span(parent: number, i: number): number {
    const s = this.p.spans;
    const cat = s.category[i];
    const step = s.step[i];
    let under = parent;
    let name = s.name[i];
    if (cat === Cat.Iteration) name = this.iteration;
    else if (cat === Cat.Thread) name = this.threads[s.thread[i]] ?? name;
    else if (step >= 0 && step < this.types.length) {
      under = this.frame(parent, this.types[step], KIND_TYPE, step);
      this.add(under, s.duration[i]);
      name = this.nodes[step];
    }
    const frame = this.frame(under, name, cat, step);
    this.add(frame, s.duration[i]);
    return frame;
  }
  /** Takes time that is not shown off a frame and all around it. */
  takeOff(frame: number, ns: number): void {
    for (let at = frame; at > ROOT; at = this.parent[at]) this.total[at] -= ns;
  }
}

const begins = (cat: number): boolean => cat === Cat.Iteration || cat === Cat.Operator || cat === Cat.User || cat === Cat.Device;
const OUT = -1; // a span without a frame; those inside may have one
const NEVER = -2; // nothing inside has one either

export function buildTree(p: Profile, warmups: boolean): Tree {
  const s = p.spans;
  const { within } = lanesOf(p);
  const b = new Builder(p);
  const frames = new Int32Array(s.n);
  const own = s.duration.slice(); // of a span: what none inside it takes
  const isRun = new Uint8Array(s.n);
  for (let k = 0; k < p.runs.n; k++) isRun[p.runs.span[k]] = 1;
  let runs = 0;
  for (let i = 0; i < s.n; i++) {
    // A link says what a span belongs to; where a span on its own thread is nearer (it began later), it is in that.
    const around = Math.max(s.parent[i], within[i]);
    const above = around >= 0 ? frames[around] : OUT;
    const cat = s.category[i];
    if (!warmups && s.flags[i] & WARMUP) {
      if (above >= 0 && cat === Cat.Iteration) b.takeOff(above, s.duration[i]);
      if (above >= 0) own[around] -= s.duration[i];
      frames[i] = NEVER;
    } else if (above >= 0) {
      frames[i] = b.span(above, i);
      own[around] -= s.duration[i];
    }
    else if (above === NEVER) frames[i] = NEVER;
    else frames[i] = begins(cat) ? b.span(ROOT, i) : OUT;
    if (frames[i] >= 0 && cat === Cat.Iteration && (isRun[i] || s.flags[i] & WARMUP || !p.runs.n)) runs++;
  }
  takeUsual(b, p, frames, own, runsOf(p, (i) => Math.max(s.parent[i], within[i])));
  return finish(b, runs);
}

/**
 * Sums over all runs become the usual ones: of what no frame inside takes, so that a frame is as wide as all in it. Where
 * threads work side by side that is not time, and the frame's own span counts. What is in no run stays as it is.
 */
function takeUsual(b: Builder, p: Profile, frames: Int32Array, own: Float64Array, run: Int32Array): void {
  const { n, duration } = p.spans;
  const count = b.parent.length;
  const inside = new Float64Array(count);
  for (let k = 1; k < count; k++) inside[b.parent[k]] += b.total[k];
  const outside = new Uint8Array(count);
  const ns = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    if (frames[i] < 0) continue;
    ns[i] = inside[frames[i]] > b.total[frames[i]] ? duration[i] : own[i];
    if (run[i] === OUTSIDE) outside[frames[i]] = 1;
  }
  const usual = usualSums(count, frames, run, ns);
  const below = new Float64Array(count);
  for (let k = count - 1; k > 0; k--) {
    const left = b.total[k] - inside[k];
    if (left < 0 && !outside[k]) b.total[k] = usual[k];
    else if (b.kind[k] === KIND_TYPE) b.total[k] = below[k]; // its nodes are all of it
    else b.total[k] = Math.max(0, outside[k] ? left : usual[k]) + below[k];
    below[b.parent[k]] += Math.max(0, b.total[k]);
  }
}

/** Adds the gaps as frames, then sums up. */
function finish(b: Builder, runs: number): Tree {
  const inside = new Float64Array(b.parent.length);
  for (let k = b.parent.length - 1; k > 0; k--) {
    if (b.parent[k] === ROOT) b.total[ROOT] += Math.max(0, b.total[k]);
    inside[b.parent[k]] += b.total[k];
  }
  const gap = b.names.of(BETWEEN);
  for (let k = 1, last = inside.length; k < last; k++) {
    const left = b.total[k] - inside[k];
    const holds = b.kind[k] === Cat.Iteration || b.kind[k] === Cat.User;
    if (!holds || !(inside[k] > 0) || !(left > 0)) continue;
    const frame = b.frame(k, gap, KIND_GAP, -1);
    b.total[frame] = left;
    b.calls[frame] = b.calls[k];
  }
  const n = b.parent.length;
  const parent = Int32Array.from(b.parent);
  const total = Float64Array.from(b.total);
  return {
    n,
    parent,
    total,
    name: Int32Array.from(b.name),
    names: b.names.all,
    step: Int32Array.from(b.step),
    kind: Uint8Array.from(b.kind),
    calls: Float64Array.from(b.calls),
    ...drawn(parent, total),
    ...childLists(parent),
    runs: Math.max(1, runs),
  };
}

/** What is wider than its parent (threads side by side) shares the parent's width. */
function drawn(parent: Int32Array, total: Float64Array): Pick<Tree, "width" | "self"> {
  const n = parent.length;
  const inside = new Float64Array(n);
  for (let k = 1; k < n; k++) inside[parent[k]] += total[k];
  const width = new Float64Array(n);
  const self = new Float64Array(n);
  width[ROOT] = total[ROOT];
  for (let k = 0; k < n; k++) {
    const up = parent[k];
    if (k) width[k] = Math.max(0, total[k]) * (inside[up] > 0 ? Math.min(1, total[up] / inside[up]) * ratio(width[up], total[up]) : 0);
    self[k] = width[k];
    if (k) self[up] = Math.max(0, self[up] - width[k]);
  }
  return { width, self };
}
const ratio = (a: number, b: number): number => (b > 0 ? a / b : 0);

function childLists(parent: Int32Array): Pick<Tree, "children" | "first"> {
  const n = parent.length;
  const first = new Int32Array(n + 1);
  for (let k = 1; k < n; k++) first[parent[k] + 1]++;
  for (let k = 0; k < n; k++) first[k + 1] += first[k];
  const at = first.slice();
  const children = new Int32Array(Math.max(0, n - 1));
  for (let k = 1; k < n; k++) children[at[parent[k]]++] = k;
  return { children, first };
}

/** The children of a frame, widest first or as they first came. */
export function childrenOf(tree: Tree, k: number, heavy: boolean): Int32Array {
  const list = tree.children.slice(tree.first[k], tree.first[k + 1]);
  return heavy ? list.sort((a, b) => tree.width[b] - tree.width[a] || a - b) : list;
}

/** The path from the root to a frame, both included. */
export function pathOf(tree: Tree, k: number): number[] {
  const path: number[] = [];
  for (let at = k; at >= 0; at = tree.parent[at]) path.unshift(at);
  return path;
}

/** "a;b;c 123" per frame with time of its own: ns per run, as other flame graph tools read them. */
export function folded(tree: Tree): string {
  const clean = (text: string): string => text.replace(/[;\s]+/g, "_") || "_";
  const paths: string[] = [];
  const lines: string[] = [];
  for (let k = 0; k < tree.n; k++) {
    const up = tree.parent[k];
    const name = clean(tree.names[tree.name[k]] ?? "");
    paths.push(up > ROOT ? `${paths[up]};${name}` : name);
    const ns = Math.round(tree.self[k] / tree.runs);
    if (k && ns > 0) lines.push(`${paths[k]} ${ns}`);
  }
  return lines.length ? `${lines.join("\n")}\n` : "";
}

/** The time of all frames that match, those inside of others not counted twice. */
export function matchedTime(tree: Tree, hit: Uint8Array): number {
  const covered = new Uint8Array(tree.n);
  let ns = 0;
  for (let k = 0; k < tree.n; k++) {
    const up = tree.parent[k];
    if (up >= 0 && covered[up]) covered[k] = 1;
    else if (hit[tree.name[k]] && k) {
      covered[k] = 1;
      ns += tree.width[k];
    }
  }
  return ns;
}
