// SPDX-License-Identifier: Apache-2.0
// Profiles of any size, written straight in the form that the page reads (docs/profile-format.md), as streams:
// millions of spans, thousands of steps. All figures follow from the options, so tests know what the page must show.
//   node synthetic.mjs OUTPUT.html SPANS [STEPS]
import { createWriteStream } from "node:fs";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createGzip } from "node:zlib";
import { emptyPage, MARK } from "./profiles.mjs";

const OPS = ["Conv", "MatMul", "Add", "Relu", "Softmax", "Transpose"];
const [ITERATION, OPERATOR, THREAD] = [1, 2, 5]; // categories
const GAP = 50; // ns between steps
const BYTES = 64 * 1024; // of every tensor
const FAR = 13; // steps that some tensors live

/** A number of 0…1 that looks random and is always the same. */
function noise(seed) {
  let h = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 4294967296;
}

/** What one run consists of: its own span, then the steps; every tenth step also has a part on another thread. */
function slotsOf(steps) {
  const slots = [{ category: ITERATION, step: -1, thread: 0, up: 0, name: 1 }];
  for (let k = 0; k < steps; k++) {
    slots.push({ category: OPERATOR, step: k, thread: 0, up: slots.length, name: 2 + k });
    if (k % 10 === 0) slots.push({ category: THREAD, step: k, thread: 1, up: 1, name: 2 + k });
  }
  return slots;
}

function timesOf(runs, steps, slots) {
  const n = runs * slots.length;
  const times = { start: new Float64Array(n), duration: new Float64Array(n), wall: new Float64Array(runs), sums: new Float64Array(steps) };
  let now = 1_000_000; // loading took a millisecond
  let i = 0;
  for (let r = 0; r < runs; r++) {
    const first = i++;
    times.start[first] = now;
    let t = now + GAP;
    for (let k = 0; k < steps; k++) {
      const duration = Math.round((2000 + ((k * 7919) % 20) * 1000) * (0.9 + 0.2 * noise(r * steps + k)));
      times.start[i] = t;
      times.duration[i++] = duration;
      if (k % 10 === 0) {
        times.start[i] = t + 20;
        times.duration[i++] = duration - 40;
      }
      if (r > 0) times.sums[k] += duration; // the first run is a warm-up
      t += duration + GAP;
    }
    times.wall[r] = times.duration[first] = t - now;
    now = t + 1000;
  }
  return times;
}

function statsOf(walls) {
  const sorted = Float64Array.from(walls).sort();
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  const mean = sorted.reduce((a, b) => a + b, 0) / sorted.length;
  const stddev = Math.sqrt(sorted.reduce((a, b) => a + (b - mean) ** 2, 0) / sorted.length);
  return {
    count: sorted.length, min: sorted[0], max: sorted[sorted.length - 1], mean, stddev,
    p50: at(0.5), p90: at(0.9), p95: at(0.95), p97: at(0.97), p99: at(0.99), p999: at(0.999),
  };
}

function rowOf(name, op, kernel, node, steps, means, wall) {
  const mean = steps.reduce((sum, k) => sum + means[k], 0);
  const product = op === "Conv" || op === "MatMul";
  return {
    name, op, kernel, node, calls: steps.length, mean_ns: mean, share: mean / wall, usual_ns: mean, usual_share: mean / wall, call_mean_ns: mean / steps.length,
    call_p50_ns: mean / steps.length, call_p99_ns: (1.1 * mean) / steps.length, flops: product ? 40_000 * steps.length : 512 * steps.length,
    bytes: 3 * BYTES * steps.length, roofline: product ? 0.4 : 0.2, bound: product ? "compute" : "l2", arithmetic: product ? "f32" : "",
    step: steps[0],
  };
}

const opOf = (k) => OPS[k % OPS.length];
const nodeOf = (k) => `/layer${Math.floor(k / 100)}/block${Math.floor(k / 10) % 10}/${opOf(k)}_${k}`;
const tensor = (name) => ({ name, dtype: "f32", dims: [256, 64] });
const isFar = (k) => k > FAR && k % 7 === 3; // reads a tensor from far above

function tables(steps, means, wall) {
  const all = [...Array(steps).keys()];
  const groups = OPS.map((op, i) => [op, all.filter((k) => k % OPS.length === i)]).filter(([, list]) => list.length);
  const other = { ...rowOf("[Other]", "", "", "", [], means, wall), calls: 0, flops: 0, bytes: 0, roofline: null, bound: "", step: -1, bracket: true };
  other.mean_ns = wall - means.reduce((a, b) => a + b, 0);
  other.share = other.mean_ns / wall;
  other.usual_ns = other.mean_ns;
  other.usual_share = other.share;
  other.call_mean_ns = other.call_p50_ns = other.call_p99_ns = 0;
  const kernel = (op) => `sn_f32_${op.toLowerCase()}_c`;
  const down = (rows) => rows.sort((a, b) => b.mean_ns - a.mean_ns);
  const rows = {
    op: down([...groups.map(([op, list]) => rowOf(op, op, kernel(op), nodeOf(list[0]), list, means, wall)), { ...other }]),
    node: down([...all.map((k) => rowOf(opOf(k), opOf(k), kernel(opOf(k)), nodeOf(k), [k], means, wall)), { ...other }]),
    shape: down([...groups.map(([op, list]) => rowOf(`${op} f32[256,64]`, op, kernel(op), nodeOf(list[0]), list, means, wall)), { ...other }]),
    kernel: down([...groups.map(([op, list]) => rowOf(kernel(op), op, kernel(op), nodeOf(list[0]), list, means, wall)), { ...other }]),
  };
  const nodeRow = new Map(rows.node.map((row, i) => [row.step, i]));
  const opRow = (list, op) => list.findIndex((row) => row.op === op);
  const stepOf = (k) => ({
    table: 1, index: k, op: opOf(k), name: nodeOf(k), post_op: k % 5 === 0 ? "Relu" : "",
    origins: [{ name: nodeOf(k), op: opOf(k) }, ...(k % 5 === 0 ? [{ name: `${nodeOf(k)}/relu`, op: "Relu" }] : [])],
    inputs: [tensor(k ? `t${k - 1}` : "x"), ...(isFar(k) ? [tensor(`t${k - FAR}`)] : []), ...(k % 6 < 2 ? [{ ...tensor(`w${k}`), constant: true }] : [])],
    outputs: [tensor(`t${k}`)], kernel: kernel(opOf(k)), attributes: "", flops: 0, bytes: 3 * BYTES, arithmetic: k % 6 < 2 ? "f32" : "",
    bind_ns: 1000, rows: [opRow(rows.op, opOf(k)), nodeRow.get(k), opRow(rows.shape, opOf(k)), opRow(rows.kernel, opOf(k))],
  });
  const lives = all.map((k) => ({
    table: 1, first: k, last: Math.min(steps - 1, isFar(k + FAR) ? k + FAR : k + 1), name: `t${k}`,
    offset: (k % (FAR + 3)) * BYTES, bytes: BYTES, place: k === steps - 1 ? "output" : "arena",
  }));
  return { rows, steps: all.map(stepOf), lives };
}

/** A profile: its header, its columns as functions of the position, and what tests want to know of it. */
export function synthetic({ spans = 100_000, steps = 90 } = {}) {
  const slots = slotsOf(steps);
  const runs = Math.max(2, Math.round(spans / slots.length));
  const times = timesOf(runs, steps, slots);
  const measured = times.wall.subarray(1);
  const wall = statsOf(measured);
  const means = Array.from(times.sums, (sum) => sum / (runs - 1));
  const counted = Math.min(runs, Math.ceil(20_000 / steps)); // runs with counters
  const n = runs * slots.length;
  const header = {
    schema: "sonde.page/1", sonde: "0.1.0", model: `synthetic_${n}`, level: 3, pid: 1, start_unix_ms: 1.7e12, record_ns: 20, dropped: 0, note: "",
    counters_note: "", machine: {
      cpu: "a processor", cpu_level: "avx2", cores: 4, threads: 2, precision: "", peak_gops: { f32: 100 }, peak_gbps: 20,
      caches: [{ bytes: 1 << 20, gbps: 200 }, { bytes: 1 << 24, gbps: 80 }],
    },
    memory: { constants: 1 << 20, arenas: (FAR + 3) * BYTES, outputs: BYTES, held: 1 << 21, held_peak: 1 << 22, rss: 1 << 24, rss_peak: 1 << 25 },
    usage: null, summary: { iterations: runs - 1, warmups: 1, instances: 1, runs_per_s: 1e9 / wall.mean, ops: steps, cost_ns: 1000, wall },
    ...tables(steps, means, wall.mean), threads: [{ id: 1, os_tid: 1, name: "main" }, { id: 2, os_tid: 2, name: "worker 1" }],
    findings: [{ severity: "slow", topic: "a topic", finding: "something is slow", evidence: "seen", remedy: "mend it" }], what_if: [],
    strings: ["", "Iteration", ...Array.from({ length: steps }, (_, k) => nodeOf(k)), "live bytes"],
    counts: { spans: n, counters: counted * steps, runs: runs - 1 },
  };
  const slot = (i) => slots[i % slots.length];
  const run = (i) => Math.floor(i / slots.length);
  /** The position of the span of step k in run r. */
  const spanOf = (r, k) => r * slots.length + 1 + k + Math.ceil(k / 10);
  const end = (i) => times.start[i] + times.duration[i];
  const m = counted * steps;
  const columns = [
    { n, value: (i) => times.start[i] - (i ? times.start[i - 1] : 0) },
    { n, value: (i) => times.duration[i] },
    { n, value: (i) => slot(i).category },
    { n, value: (i) => slot(i).thread },
    { n, value: (i) => slot(i).step + 1 },
    { n, value: (i) => run(i) + 1 },
    { n, value: (i) => run(i) },
    { n, value: () => 0 }, // instance
    { n, value: (i) => (run(i) ? 0 : 1) }, // the first run is a warm-up
    { n, value: (i) => slot(i).name },
    { n, value: () => 0 }, // text
    { n, value: () => 0 }, // label
    { n, value: (i) => slot(i).up },
    // Counters: a value at the end of every step.
    { n: m, value: (i) => end(spanOf(Math.floor(i / steps), i % steps)) },
    { n: m, value: () => steps + 2 },
    { n: m, value: (i) => (i % steps) + 1 },
    { n: m, value: (i) => BYTES * (2 + (i % 7)), double: true },
    // Measured runs.
    { n: runs - 1, value: (i) => (i + 1) * slots.length },
    { n: runs - 1, value: (i) => times.wall[i + 1], double: true },
  ];
  return { header, columns, times, spanOf, runs };
}

function* varints({ n, value }) {
  let buffer = Buffer.allocUnsafe(1 << 16);
  let at = 0;
  for (let i = 0; i < n; i++) {
    let v = value(i);
    while (v > 127) {
      buffer[at++] = (v % 128) | 128;
      v = Math.floor(v / 128);
    }
    buffer[at++] = v;
    if (at > buffer.length - 10) {
      yield buffer.subarray(0, at);
      buffer = Buffer.allocUnsafe(1 << 16);
      at = 0;
    }
  }
  yield buffer.subarray(0, at);
}

function doubles({ n, value }) {
  const buffer = Buffer.alloc(8 * n);
  for (let i = 0; i < n; i++) buffer.writeDoubleLE(value(i), 8 * i);
  return buffer;
}

function* bytesOf(p) {
  yield Buffer.from(`${JSON.stringify(p.header)}\n`);
  for (const column of p.columns) {
    if (column.double) yield doubles(column);
    else yield* varints(column);
  }
}

/** Text whose every piece is a multiple of four characters. */
function base64() {
  let rest = Buffer.alloc(0);
  return new Transform({
    transform(part, _, done) {
      const all = rest.length ? Buffer.concat([rest, part]) : part;
      const whole = all.length - (all.length % 3);
      rest = Buffer.from(all.subarray(whole));
      done(null, all.subarray(0, whole).toString("base64"));
    },
    flush(done) {
      done(null, rest.toString("base64"));
    },
  });
}

/** Writes a page with such a profile, perhaps made odd by `change`; returns the profile. */
export async function writeSynthetic(file, { change, ...options } = {}) {
  const profile = synthetic(options);
  change?.(profile);
  const [before, after] = (await emptyPage()).split(MARK);
  const to = createWriteStream(file);
  to.write(`${before}<script type="application/x-sonde-profile" title="">`);
  await pipeline(Readable.from(bytesOf(profile), { objectMode: true }), createGzip({ level: 1 }), base64(), to, { end: false });
  await new Promise((done, fail) => to.on("error", fail).end(`</script>\n${after}`, done));
  return profile;
}

/** A trend of so many entries a day apart, from 12 ms on; `changes`: [position, ratio]. */
export function trendOf({ entries = 60, changes = [] } = {}) {
  const at = new Map(changes);
  const levels = [];
  let level = 12;
  const points = Array.from({ length: entries }, (_, i) => {
    if (i === 0 || at.has(i)) {
      level *= at.get(i) ?? 1;
      if (levels.length) levels[levels.length - 1].to = i;
      levels.push({ from: i, to: entries, value_ms: level });
    }
    const value = level * (0.99 + 0.02 * noise(i)) * (noise(i + 7) > 0.97 ? 1.6 : 1);
    const hash = [1, 2, 3, 4, 5].map((k) => Math.floor(noise(i * 5 + k) * 2 ** 32).toString(16).padStart(8, "0")).join("");
    return {
      id: i + 1, value_ms: value, low_ms: value * 0.995, high_ms: value * 1.005, at_unix_ms: Date.UTC(2026, 0, 1, 12) + i * 86_400_000,
      commit: hash, ...(i % 10 === 0 ? { note: "a note" } : {}), ...(at.has(i) ? { change: true, ratio: at.get(i) } : {}),
    };
  });
  return { title: `a model, 1 thread, ${entries} entries`, machine: "a processor", points, levels };
}

/** Writes a page with nothing but trends. */
export async function writeTrends(file, trends) {
  return writeSynthetic(file, {
    spans: 1,
    steps: 1,
    change: (p) => {
      const none = Object.fromEntries(["count", "min", "max", "mean", "stddev", "p50", "p90", "p95", "p97", "p99", "p999"].map((key) => [key, 0]));
      Object.assign(p.header, { model: "trends", trends, steps: [], lives: [], threads: [], findings: [], strings: [""], rows: { op: [], node: [], shape: [], kernel: [] } });
      Object.assign(p.header, { counts: { spans: 0, counters: 0, runs: 0 }, summary: { ...p.header.summary, iterations: 0, warmups: 0, runs_per_s: 0, wall: none } });
      p.columns = [];
    },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [file, spans, steps] = process.argv.slice(2);
  if (!spans) throw new Error("usage: node synthetic.mjs OUTPUT.html SPANS [STEPS]");
  await writeSynthetic(file, { spans: Number(spans), steps: Number(steps ?? 90) });
}
