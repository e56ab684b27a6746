// SPDX-License-Identifier: Apache-2.0
// Where the nodes of each rank stand from left to right, after Brandes and Köpf, "Fast and Simple Horizontal Coordinate
// Assignment": four drawings, each with nodes under each other wherever possible, and of each node's four places the
// mean of the two in the middle. Placeholders of long edges have the numbers from `real` on; they go first, so long
// edges are straight.
import type { Csr } from "./layout_order";

const GAP = 26;
const LINE_GAP = 12; // beside a placeholder

export function place(layers: Uint32Array[], up: Csr, down: Csr, width: Float64Array, real: number): Float64Array {
  const n = width.length;
  const pos = new Uint32Array(n);
  layers.forEach((layer) => layer.forEach((v, i) => void (pos[v] = i)));
  const barred = conflicts(layers, up, pos, real);
  // What hangs on one edge stands beside what it belongs to: a chain with an input at every node stays straight.
  const end = new Uint8Array(n);
  for (let v = 0; v < n; v++) end[v] = up.start[v + 1] - up.start[v] + down.start[v + 1] - down.start[v] === 1 ? 1 : 0;
  const all: Float64Array[] = [];
  for (const upwards of [false, true]) {
    for (const rightwards of [false, true]) {
      const rows = (upwards ? [...layers].reverse() : layers).map((layer) => (rightwards ? layer.slice().reverse() : layer));
      const at = new Uint32Array(n);
      rows.forEach((row) => row.forEach((v, i) => void (at[v] = i)));
      const root = align(rows, upwards ? down : up, at, barred, end, upwards);
      const x = compact(rows, root, width, real);
      if (rightwards) for (let v = 0; v < n; v++) x[v] = -x[v];
      all.push(x);
    }
  }
  return middle(all, width);
}

/** Edges that would cross a straight stretch of a long edge: they are not followed when nodes are lined up. */
function conflicts(layers: Uint32Array[], up: Csr, pos: Uint32Array, real: number): Set<number> {
  const n = pos.length;
  const barred = new Set<number>();
  for (let r = 1; r < layers.length; r++) {
    const layer = layers[r];
    let low = 0;
    let scanned = 0;
    for (let i = 0; i < layer.length; i++) {
      const v = layer[i];
      const above = v >= real ? up.list[up.start[v]] : -1; // a placeholder has one
      const inner = above >= real;
      if (!inner && i < layer.length - 1) continue;
      const high = inner ? pos[above] : layers[r - 1].length;
      for (; scanned <= i; scanned++) {
        const w = layer[scanned];
        for (let k = up.start[w]; k < up.start[w + 1]; k++) {
          const u = up.list[k];
          if ((pos[u] < low || pos[u] > high) && !(u >= real && w >= real)) barred.add(u * n + w);
        }
      }
      low = high;
    }
  }
  return barred;
}

/** Blocks of nodes under each other: per node the first one of its block. */
function align(rows: Uint32Array[], near: Csr, at: Uint32Array, barred: Set<number>, end: Uint8Array, upwards: boolean): Uint32Array {
  const n = at.length;
  const root = Uint32Array.from({ length: n }, (_, v) => v);
  for (let r = 1; r < rows.length; r++) {
    let last = -1;
    for (const v of rows[r]) {
      const from = near.start[v];
      const to = near.start[v + 1];
      if (from === to) continue;
      let around = near.list.slice(from, to);
      if (around.some((w) => !end[w])) around = around.filter((w) => !end[w]);
      around.sort((a, b) => at[a] - at[b]);
      const half = (around.length - 1) / 2;
      for (let i = Math.floor(half); i <= Math.ceil(half); i++) {
        const w = around[i];
        if (at[w] <= last || barred.has(upwards ? v * n + w : w * n + v)) continue;
        root[v] = root[w];
        last = at[w];
        break;
      }
    }
  }
  return root;
}

/** Blocks as far left as those before them allow, then back to the right where nothing is in the way. */
function compact(rows: Uint32Array[], root: Uint32Array, width: Float64Array, real: number): Float64Array {
  const n = width.length;
  const before: number[] = [];
  const after: number[] = [];
  const apart: number[] = [];
  for (const row of rows) {
    for (let i = 1; i < row.length; i++) {
      const u = row[i - 1];
      const v = row[i];
      before.push(root[u]);
      after.push(root[v]);
      apart.push((width[u] + width[v]) / 2 + (u >= real || v >= real ? LINE_GAP : GAP));
    }
  }
  const m = before.length;
  const head = new Int32Array(n).fill(-1); // lists of the edges that leave each block
  const next = new Int32Array(m);
  const left = new Uint32Array(n);
  for (let e = 0; e < m; e++) {
    next[e] = head[before[e]];
    head[before[e]] = e;
    left[after[e]]++;
  }
  const x = new Float64Array(n);
  const sorted: number[] = [];
  for (let v = 0; v < n; v++) if (root[v] === v && !left[v]) sorted.push(v);
  for (let k = 0; k < sorted.length; k++) {
    for (let e = head[sorted[k]]; e >= 0; e = next[e]) {
      x[after[e]] = Math.max(x[after[e]], x[sorted[k]] + apart[e]);
      if (!--left[after[e]]) sorted.push(after[e]);
    }
  }
  for (let k = sorted.length - 1; k >= 0; k--) {
    let room = Infinity;
    for (let e = head[sorted[k]]; e >= 0; e = next[e]) room = Math.min(room, x[after[e]] - apart[e]);
    if (room < Infinity) x[sorted[k]] = Math.max(x[sorted[k]], room);
  }
  for (let v = 0; v < n; v++) x[v] = x[root[v]];
  return x;
}

function middle(all: Float64Array[], width: Float64Array): Float64Array {
  const n = width.length;
  const low: number[] = [];
  const high: number[] = [];
  for (const x of all) {
    let a = Infinity;
    let b = -Infinity;
    for (let v = 0; v < n; v++) {
      a = Math.min(a, x[v] - width[v] / 2);
      b = Math.max(b, x[v] + width[v] / 2);
    }
    low.push(a);
    high.push(b);
  }
  let slim = 0;
  for (let k = 1; k < 4; k++) if (high[k] - low[k] < high[slim] - low[slim]) slim = k;
  // Drawings that lean to the left meet at their left edges, the others at their right ones.
  const shift = all.map((_, k) => (k % 2 ? high[slim] - high[k] : low[slim] - low[k]));
  const to = new Float64Array(n);
  const four = new Float64Array(4);
  for (let v = 0; v < n; v++) {
    for (let k = 0; k < 4; k++) four[k] = all[k][v] + shift[k];
    four.sort();
    to[v] = (four[1] + four[2]) / 2;
  }
  return to;
}
