// SPDX-License-Identifier: Apache-2.0
// The order of the nodes on each rank: sweeps down and up put every node at the mean place of its neighbours on the
// rank before, and the order with the fewest crossings is kept.

/** Items grouped by a key, as one array and where each group begins. */
export class Csr {
  readonly start: Uint32Array;
  readonly list: Uint32Array;
  constructor(groups: number, items: number, key: (item: number) => number, value: (item: number) => number = (i) => i) {
    this.start = new Uint32Array(groups + 1);
    for (let i = 0; i < items; i++) this.start[key(i) + 1]++;
    for (let g = 0; g < groups; g++) this.start[g + 1] += this.start[g];
    const next = this.start.slice();
    this.list = new Uint32Array(items);
    for (let i = 0; i < items; i++) this.list[next[key(i)]++] = value(i);
  }
}

const WORK = 3e6; // visits of nodes and edges, over all sweeps
const PATIENCE = 4; // sweeps without a better order

/** Reorders `layers` in place. `up` and `down`: neighbours of each node on the rank above and below. */
export function order(layers: Uint32Array[], up: Csr, down: Csr): void {
  const n = up.start.length - 1;
  const pos = new Uint32Array(n);
  const count = (): void => layers.forEach((layer) => layer.forEach((v, i) => void (pos[v] = i)));
  firstOrder(layers, down);
  count();
  let best = layers.map((layer) => layer.slice());
  let fewest = crossings(layers, down, pos);
  const sweeps = Math.max(4, Math.min(24, Math.floor(WORK / (n + up.list.length + 1))));
  const mean = new Float64Array(n);
  for (let sweep = 0, idle = 0; sweep < sweeps && idle < PATIENCE && fewest > 0; sweep++) {
    const downwards = sweep % 2 === 0;
    for (let k = 1; k < layers.length; k++) {
      sortLayer(layers[downwards ? k : layers.length - 1 - k], downwards ? up : down, pos, mean);
    }
    const now = crossings(layers, down, pos);
    idle++;
    if (now < fewest) {
      fewest = now;
      best = layers.map((layer) => layer.slice());
      idle = 0;
    }
  }
  best.forEach((layer, i) => layers[i].set(layer));
}

/** As a search in depth meets them: what hangs together stands together. */
function firstOrder(layers: Uint32Array[], down: Csr): void {
  const met = new Uint8Array(down.start.length - 1);
  const layerOf = new Uint32Array(met.length);
  layers.forEach((layer, r) => layer.forEach((v) => void (layerOf[v] = r)));
  const filled = new Uint32Array(layers.length);
  const roots = layers.map((layer) => layer.slice());
  for (const layer of roots) {
    for (const root of layer) {
      const stack = [root];
      while (stack.length) {
        const v = stack.pop() as number;
        if (met[v]) continue;
        met[v] = 1;
        layers[layerOf[v]][filled[layerOf[v]]++] = v;
        for (let i = down.start[v + 1]; i > down.start[v]; i--) if (!met[down.list[i - 1]]) stack.push(down.list[i - 1]);
      }
    }
  }
}

function sortLayer(layer: Uint32Array, near: Csr, pos: Uint32Array, mean: Float64Array): void {
  for (const v of layer) {
    const from = near.start[v];
    const to = near.start[v + 1];
    let sum = 0;
    for (let i = from; i < to; i++) sum += pos[near.list[i]];
    mean[v] = to > from ? sum / (to - from) : pos[v];
  }
  layer.sort((a, b) => mean[a] - mean[b] || pos[a] - pos[b]);
  layer.forEach((v, i) => void (pos[v] = i));
}

/** Pairs of edges that cross, over all ranks: inversions, counted with a Fenwick tree. */
function crossings(layers: Uint32Array[], down: Csr, pos: Uint32Array): number {
  let total = 0;
  for (let r = 0; r + 1 < layers.length; r++) {
    const size = layers[r + 1].length;
    if (size < 2 || layers[r].length < 2) continue;
    const tree = new Uint32Array(size + 1);
    let seen = 0;
    for (const v of layers[r]) {
      const ends = down.list.slice(down.start[v], down.start[v + 1]);
      for (const w of ends) {
        let before = 0; // edges so far that end at or before w
        for (let i = pos[w] + 1; i > 0; i -= i & -i) before += tree[i];
        total += seen - before;
      }
      for (const w of ends) for (let i = pos[w] + 1; i <= size; i += i & -i) tree[i]++;
      seen += ends.length;
    }
  }
  return total;
}
