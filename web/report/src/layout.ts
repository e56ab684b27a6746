// SPDX-License-Identifier: Apache-2.0
// A layered drawing of a graph from top to bottom, after Sugiyama: break cycles, put nodes on ranks, order each rank so
// that few edges cross, give coordinates. Connected parts are drawn one by one and packed like words on lines. No
// recursion, since a chain may have thousands of nodes, and no step that is worse than E log V.
import { Csr, order } from "./layout_order";
import { place } from "./layout_place";

export interface Layout {
  x: Float64Array; // centres
  y: Float64Array;
  width: number;
  height: number;
  bends: number[][]; // per edge: x, y, x, y …
}

const RANK_GAP = 46; // room for a line of text between two ranks
const PART_GAP = 48;
const MARGIN = 24;
const TIGHTENINGS = 3;
const CHAIN_BUDGET = 20_000; // placeholders of long edges, and 4 more per node

export function layout(n: number, edges: Uint32Array, widths: Float64Array, heights: Float64Array): Layout {
  const dag = acyclic(n, edges);
  const x = new Float64Array(n);
  const y = new Float64Array(n);
  const lines: number[][] = new Array<number[]>(dag.from.length);
  const parts = components(n, dag).map((part) => drawPart(part, dag, widths, heights));
  const size = pack(parts);
  for (const part of parts) {
    part.nodes.forEach((v, i) => {
      x[v] = part.x[i] + part.left;
      y[v] = part.y[i] + part.top;
    });
    part.edges.forEach((e, i) => {
      const line = part.lines[i];
      for (let k = 0; k < line.length; k += 2) {
        line[k] += part.left;
        line[k + 1] += part.top;
      }
      lines[e] = line;
    });
  }
  const bends: number[][] = [];
  for (let e = 0; e < edges.length / 2; e++) {
    const d = dag.of[e];
    if (d < 0) bends.push(loop(edges[2 * e], x, y, widths));
    else bends.push(dag.flipped[e] ? backwards(lines[d]) : lines[d]);
  }
  return { x, y, ...size, bends };
}

function loop(v: number, x: Float64Array, y: Float64Array, widths: Float64Array): number[] {
  const side = x[v] + widths[v] / 2;
  return [side, y[v] - 6, side + 14, y[v] - 6, side + 14, y[v] + 6, side, y[v] + 6];
}

function backwards(line: number[]): number[] {
  const to: number[] = [];
  for (let k = line.length - 2; k >= 0; k -= 2) to.push(line[k], line[k + 1]);
  return to;
}

// ---------------------------------------------------------------- cycles
interface Dag {
  from: number[];
  to: number[];
  of: Int32Array; // per given edge: its edge here; -1: a loop
  flipped: Uint8Array; // per given edge: drawn against its direction
}

/** Each pair of nodes once, without loops, and with the edges turned round that close a cycle. */
function acyclic(n: number, edges: Uint32Array): Dag {
  const m = edges.length / 2;
  const back = closing(n, edges);
  const dag: Dag = { from: [], to: [], of: new Int32Array(m).fill(-1), flipped: new Uint8Array(m) };
  const known = new Map<number, number>();
  for (let e = 0; e < m; e++) {
    const a = edges[2 * e + back[e]];
    const b = edges[2 * e + 1 - back[e]];
    if (a === b) continue;
    let d = known.get(a * n + b);
    if (d === undefined) {
      d = dag.from.length;
      known.set(a * n + b, d);
      dag.from.push(a);
      dag.to.push(b);
    }
    dag.of[e] = d;
    dag.flipped[e] = back[e];
  }
  return dag;
}

/** 1 for edges that lead back to a node whose search is not finished. */
function closing(n: number, edges: Uint32Array): Uint8Array {
  const m = edges.length / 2;
  const out = new Csr(n, m, (e) => edges[2 * e]);
  const entered = new Uint8Array(n); // has a predecessor
  for (let e = 0; e < m; e++) if (edges[2 * e] !== edges[2 * e + 1]) entered[edges[2 * e + 1]] = 1;
  const back = new Uint8Array(m);
  const state = new Uint8Array(n); // 1: on the way, 2: finished
  const next = out.start.slice(0, n);
  const stack: number[] = [];
  const search = (root: number): void => {
    if (state[root]) return;
    state[root] = 1;
    stack.push(root);
    while (stack.length) {
      const v = stack[stack.length - 1];
      if (next[v] === out.start[v + 1]) {
        state[v] = 2;
        stack.pop();
        continue;
      }
      const e = out.list[next[v]++];
      const w = edges[2 * e + 1];
      if (state[w] === 1 && w !== v) back[e] = 1;
      if (state[w]) continue;
      state[w] = 1;
      stack.push(w);
    }
  };
  for (let v = 0; v < n; v++) if (!entered[v]) search(v);
  for (let v = 0; v < n; v++) search(v);
  return back;
}

// ---------------------------------------------------------------- parts
interface Part {
  nodes: number[];
  edges: number[]; // of the Dag
}
interface DrawnPart extends Part {
  x: Float64Array;
  y: Float64Array;
  lines: number[][];
  width: number;
  height: number;
  left: number;
  top: number;
}

function components(n: number, dag: Dag): Part[] {
  const parent = Uint32Array.from({ length: n }, (_, i) => i);
  const find = (v: number): number => {
    while (parent[v] !== v) v = parent[v] = parent[parent[v]];
    return v;
  };
  for (let e = 0; e < dag.from.length; e++) parent[find(dag.from[e])] = find(dag.to[e]);
  const parts = new Map<number, Part>();
  for (let v = 0; v < n; v++) {
    const root = find(v);
    const part = parts.get(root);
    if (part) part.nodes.push(v);
    else parts.set(root, { nodes: [v], edges: [] });
  }
  for (let e = 0; e < dag.from.length; e++) parts.get(find(dag.from[e]))?.edges.push(e);
  return [...parts.values()];
}

/** The largest part first; the others beside it or below, in lines. */
function pack(parts: DrawnPart[]): { width: number; height: number } {
  let area = 0;
  let widest = 0;
  for (const part of parts) {
    area += (part.width + PART_GAP) * (part.height + PART_GAP);
    widest = Math.max(widest, part.width);
  }
  const room = Math.max(widest, 1.3 * Math.sqrt(area));
  const size = { width: 2 * MARGIN, height: 2 * MARGIN };
  let left = MARGIN;
  let top = MARGIN;
  let high = 0;
  for (const part of [...parts].sort((a, b) => b.height - a.height || a.nodes[0] - b.nodes[0])) {
    if (left > MARGIN && left + part.width > room + MARGIN) {
      top += high + PART_GAP;
      left = MARGIN;
      high = 0;
    }
    part.left = left;
    part.top = top;
    left += part.width + PART_GAP;
    high = Math.max(high, part.height);
    size.width = Math.max(size.width, part.left + part.width + MARGIN);
    size.height = Math.max(size.height, part.top + part.height + MARGIN);
  }
  return size;
}

// ---------------------------------------------------------------- one part
/** The part with nodes and edges counted from 0. */
interface Local {
  n: number;
  from: Uint32Array;
  to: Uint32Array;
  width: Float64Array;
  height: Float64Array;
}

function drawPart(part: Part, dag: Dag, widths: Float64Array, heights: Float64Array): DrawnPart {
  if (part.nodes.length === 1) {
    const [width, height] = [widths[part.nodes[0]], heights[part.nodes[0]]];
    return { ...part, x: Float64Array.of(width / 2), y: Float64Array.of(height / 2), lines: [], width, height, left: 0, top: 0 };
  }
  const at = new Map(part.nodes.map((v, i) => [v, i]));
  const g: Local = {
    n: part.nodes.length,
    from: Uint32Array.from(part.edges, (e) => at.get(dag.from[e]) as number),
    to: Uint32Array.from(part.edges, (e) => at.get(dag.to[e]) as number),
    width: Float64Array.from(part.nodes, (v) => widths[v]),
    height: Float64Array.from(part.nodes, (v) => heights[v]),
  };
  const rank = ranks(g);
  const long = chains(g, rank);
  const { layers, up, down } = layered(g, rank, long);
  order(layers, up, down);
  const sizes = new Float64Array(long.rank.length);
  sizes.set(g.width);
  const x = place(layers, up, down, sizes, g.n);
  const levels = heightsOf(g, rank, layers.length);
  const y = Float64Array.from(rank, (r) => (levels.top[r] + levels.bottom[r]) / 2);
  let left = Infinity;
  let right = 0;
  for (let v = 0; v < x.length; v++) left = Math.min(left, x[v] - sizes[v] / 2);
  for (let v = 0; v < x.length; v++) right = Math.max(right, (x[v] -= left) + sizes[v] / 2);
  const drawn = route(g, rank, long, levels, x, y, right);
  return { ...part, x, y, ...drawn, height: levels.bottom[layers.length - 1], left: 0, top: 0 };
}

/** Longest path from the top; then nodes with more consumers than producers come down to their consumers. */
function ranks(g: Local): Int32Array {
  const m = g.from.length;
  const out = new Csr(g.n, m, (e) => g.from[e]);
  const left = new Uint32Array(g.n);
  for (let e = 0; e < m; e++) left[g.to[e]]++;
  const entering = left.slice();
  const rank = new Int32Array(g.n);
  const sorted: number[] = [];
  for (let v = 0; v < g.n; v++) if (!left[v]) sorted.push(v);
  for (let k = 0; k < sorted.length; k++) {
    const v = sorted[k];
    for (let i = out.start[v]; i < out.start[v + 1]; i++) {
      const w = g.to[out.list[i]];
      rank[w] = Math.max(rank[w], rank[v] + 1);
      if (!--left[w]) sorted.push(w);
    }
  }
  for (let round = 0; round < TIGHTENINGS; round++) {
    for (let k = sorted.length - 1; k >= 0; k--) {
      const v = sorted[k];
      if (out.start[v + 1] - out.start[v] <= entering[v]) continue;
      let lowest = Infinity;
      for (let i = out.start[v]; i < out.start[v + 1]; i++) lowest = Math.min(lowest, rank[g.to[out.list[i]]] - 1);
      rank[v] = Math.max(rank[v], lowest);
    }
  }
  const used = [...new Set(rank)].sort((a, b) => a - b);
  const tight = new Map(used.map((r, i) => [r, i]));
  return rank.map((r) => tight.get(r) as number);
}

/**
 * Edges over several ranks need a placeholder on each. All long edges of one node share a chain of them, and when
 * chains would outgrow the graph, the longest are left out: those edges run beside the drawing.
 */
interface Chains {
  rank: Int32Array; // of nodes and placeholders
  first: Int32Array; // per node: its first placeholder; -1: none
  length: Uint32Array;
}

function chains(g: Local, rank: Int32Array): Chains {
  const length = new Uint32Array(g.n);
  for (let e = 0; e < g.from.length; e++) {
    const v = g.from[e];
    length[v] = Math.max(length[v], rank[g.to[e]] - rank[v] - 1);
  }
  const first = new Int32Array(g.n).fill(-1);
  const all = Array.from(rank);
  let budget = CHAIN_BUDGET + 4 * g.n;
  const sources = Array.from({ length: g.n }, (_, v) => v).filter((v) => length[v]);
  for (const v of sources.sort((a, b) => length[a] - length[b])) {
    budget -= length[v];
    if (budget < 0) break;
    first[v] = all.length;
    for (let k = 1; k <= length[v]; k++) all.push(rank[v] + k);
  }
  return { rank: Int32Array.from(all), first, length };
}

function layered(g: Local, rank: Int32Array, long: Chains): { layers: Uint32Array[]; up: Csr; down: Csr } {
  const from: number[] = [];
  const to: number[] = [];
  const link = (a: number, b: number): void => void (from.push(a), to.push(b));
  for (let v = 0; v < g.n; v++) {
    const first = long.first[v];
    if (first < 0) continue;
    link(v, first);
    for (let k = 1; k < long.length[v]; k++) link(first + k - 1, first + k);
  }
  for (let e = 0; e < g.from.length; e++) {
    const v = g.from[e];
    const span = rank[g.to[e]] - rank[v];
    if (span === 1) link(v, g.to[e]);
    else if (long.first[v] >= 0) link(long.first[v] + span - 2, g.to[e]);
  }
  const total = long.rank.length;
  const byRank = new Csr(long.rank.reduce((a, b) => Math.max(a, b), 0) + 1, total, (v) => long.rank[v]);
  const layers: Uint32Array[] = [];
  for (let r = 0; r + 1 < byRank.start.length; r++) layers.push(byRank.list.slice(byRank.start[r], byRank.start[r + 1]));
  const up = new Csr(total, from.length, (e) => to[e], (e) => from[e]);
  const down = new Csr(total, from.length, (e) => from[e], (e) => to[e]);
  return { layers, up, down };
}

interface Levels {
  top: Float64Array;
  bottom: Float64Array;
}
function heightsOf(g: Local, rank: Int32Array, n: number): Levels {
  const high = new Float64Array(n).fill(8);
  for (let v = 0; v < g.n; v++) high[rank[v]] = Math.max(high[rank[v]], g.height[v]);
  const top = new Float64Array(n);
  const bottom = new Float64Array(n);
  for (let r = 0, y = 0; r < n; r++, y += RANK_GAP) {
    top[r] = y;
    bottom[r] = y += high[r];
  }
  return { top, bottom };
}

// ---------------------------------------------------------------- lines
function route(
  g: Local,
  rank: Int32Array,
  long: Chains,
  levels: Levels,
  x: Float64Array,
  y: Float64Array,
  right: number,
): { lines: number[][]; width: number } {
  let beside = 0;
  let width = right;
  const lines = Array.from(g.from, (v, e) => {
    const w = g.to[e];
    const span = rank[w] - rank[v];
    const line = [x[v], y[v] + g.height[v] / 2, x[v], levels.bottom[rank[v]]];
    if (span > 1 && long.first[v] < 0) {
      const far = right + 14 + 5 * (beside++ % 40);
      width = Math.max(width, far + 2);
      line.push(far, levels.bottom[rank[v]] + RANK_GAP / 2, far, levels.top[rank[w]] - RANK_GAP / 2);
      return line;
    }
    for (let k = 1; k < span; k++) {
      const at = x[long.first[v] + k - 1];
      line.push(at, levels.top[rank[v] + k], at, levels.bottom[rank[v] + k]);
    }
    return line;
  });
  const into = new Csr(g.n, lines.length, (e) => g.to[e]);
  for (let w = 0; w < g.n; w++) {
    const entering = [...into.list.subarray(into.start[w], into.start[w + 1])];
    const come = (e: number): number => lines[e][lines[e].length - 2];
    entering.sort((a, b) => come(a) - come(b));
    const pitch = Math.min(14, (0.45 * g.width[w]) / entering.length);
    const upright = entering.findIndex((e) => Math.abs(come(e) - x[w]) < 1); // what comes from right above stays so
    const centre = upright < 0 ? (entering.length - 1) / 2 : upright;
    entering.forEach((e, i) => {
      const port = x[w] + (i - centre) * pitch;
      lines[e].push(port, levels.top[rank[w]], port, y[w] - g.height[w] / 2);
    });
  }
  return { lines: lines.map(straightened), width };
}

/** Without points that lie on the vertical between their neighbours, or twice at one place. */
function straightened(line: number[]): number[] {
  const to = line.slice(0, 2);
  for (let k = 2; k < line.length; k += 2) {
    const n = to.length;
    const upright = n >= 4 && Math.abs(to[n - 2] - line[k]) < 0.01 && Math.abs(to[n - 4] - line[k]) < 0.01;
    const same = Math.abs(to[n - 2] - line[k]) < 0.01 && Math.abs(to[n - 1] - line[k + 1]) < 0.01;
    if (upright || (same && n > 2)) to.length = n - 2;
    if (!(same && n === 2)) to.push(line[k], line[k + 1]);
  }
  return to;
}
