// SPDX-License-Identifier: Apache-2.0
// A profile as the page reads it: the JSON of docs/profile-format.md with the same names, and its columns as typed
// arrays. Times are nanoseconds since the start of the profile.

export const SCHEMA = "sonde.page/1";

export const CATEGORIES = ["model", "iteration", "operator", "executor", "memory", "thread", "user", "device"] as const;
export const enum Cat {
  Model,
  Iteration,
  Operator,
  Executor,
  Memory,
  Thread,
  User,
  Device,
}

export interface Tensor {
  name: string;
  dtype: string; // "" when absent
  dims: number[] | null; // null: not a tensor, or absent; below 0: not known
  text?: string; // of what is no tensor: "seq(f32[?])"
  constant?: boolean; // a weight
  zeros?: number; // 0…1 of a weight's elements
  value?: number; // equal in one table: the same memory, whatever the name
}

export interface Origin {
  name: string;
  op: string;
}

export interface HardwareCounts {
  calls: number;
  cycles: number;
  instructions: number;
  cache_misses: number;
  branch_misses: number;
}

/** One step of one binding: what runs as a whole, and the nodes of the model it stands for. */
export interface Step {
  table: number;
  index: number;
  op: string;
  name: string;
  post_op: string;
  origins: Origin[];
  inputs: Tensor[];
  outputs: Tensor[];
  kernel: string;
  attributes: string;
  flops: number;
  bytes: number;
  arithmetic: string; // "f32", "bf16_tiles"; "" when there is none
  bind_ns: number;
  hw?: HardwareCounts;
  folded?: boolean; // never executed
  dynamic?: boolean;
  control?: boolean; // its time contains that of its bodies
  rows: [op: number, node: number, shape: number, kernel: number]; // its row of each table; -1: none
}

/** A row of the timing table; figures are per run. The page shows the usual ones, which one slow run does not move. */
export interface Row {
  name: string;
  op: string;
  kernel: string;
  node: string; // an example; rows by node: all of them, comma-separated
  calls: number;
  mean_ns: number;
  share: number; // 0…1 of the mean wall time
  usual_ns: number; // the median of the runs it is in, times how many these are of all
  usual_share: number; // 0…1 of the sum over the rows
  call_mean_ns: number;
  call_p50_ns: number;
  call_p99_ns: number;
  flops: number;
  bytes: number;
  roofline: number | null; // 0…1 of the nearest peak
  bound: string; // that peak: "compute", "l2", "l3", "memory"
  arithmetic: string;
  direct?: boolean; // its operations are those of direct arithmetic; its kernel does fewer
  hw?: HardwareCounts;
  step: number; // the first one; -1: none
  bracket?: boolean; // time that belongs to no operator
}
export type RowKey = "op" | "node" | "shape" | "kernel";
export const ROW_KEYS: readonly RowKey[] = ["op", "node", "shape", "kernel"];

export interface Stats {
  count: number;
  min: number;
  max: number;
  mean: number;
  stddev: number;
  p50: number;
  p90: number;
  p95: number;
  p97: number;
  p99: number;
  p999: number;
}

export interface Life {
  table: number;
  first: number; // index of the step that makes it
  last: number; // and of the last one that reads it
  name: string;
  offset: number;
  bytes: number;
  place: "arena" | "output" | "workspace" | "dynamic";
}

/** What comes into a table or goes out of it; tensors with the same `value` have its memory. */
export interface Port {
  table: number;
  name: string;
  value: number;
  output?: boolean;
}

export interface Finding {
  severity: "good" | "note" | "slow";
  topic: string;
  finding: string;
  evidence: string;
  remedy: string;
  gain?: number; // 0…1: the share of a run that the remedy is about, and may gain at most
}

export interface Scenario {
  name: string; // "sparse90+int8"
  ns: number; // a run, as predicted or measured
  speedup: number;
  note: string;
}

export interface Thread {
  id: number;
  os_tid: number;
  name: string;
}

/** An entry of a history. */
export interface TrendPoint {
  id: number;
  value_ms: number;
  low_ms?: number; // 95 % interval
  high_ms?: number;
  at_unix_ms?: number;
  commit?: string;
  note?: string;
  change?: boolean; // another level begins here
  ratio?: number; // of the change: after / before
  which?: string; // where points differ: "resnet-v2"
}
/** How one benchmark developed, the oldest entry first. */
export interface Trend {
  title: string;
  machine: string;
  across?: string; // what points differ in: "model", "host", "machine", "options", or several: "model, options"
  db?: string; // the database it is from; the usual one where it is not said
  points: TrendPoint[];
  levels: { from: number; to: number; value_ms: number }[]; // of positions [from, to)
}

/** What stands in the JSON. */
export interface Header {
  schema: string;
  sonde: string; // the version that wrote the profile; of others "ONNX Runtime"
  model: string;
  level: number;
  pid: number;
  start_unix_ms: number;
  labels?: Record<string, string>; // "host", "worker" …; older profiles have none
  record_ns: number | null; // what recording one step cost
  dropped: number;
  note: string;
  machine: {
    cpu: string;
    cpu_level: string;
    cores: number;
    threads: number;
    precision: string;
    peak_gops: Record<string, number>;
    peak_gbps: number;
    caches: { bytes: number; gbps: number }[];
  };
  memory: Record<string, number>;
  usage: { cpu_ns: number; minor_faults: number; major_faults: number; voluntary: number; involuntary: number } | null;
  counters_note: string;
  summary: {
    iterations: number;
    warmups: number;
    instances: number;
    runs_per_s: number;
    ops: number;
    cost_ns: number | null;
    wall: Stats;
  };
  rows: Record<RowKey, Row[]>;
  steps: Step[];
  threads: Thread[];
  lives: Life[];
  ports?: Port[]; // empty where tensors do not tell their memory
  findings: Finding[];
  what_if: Scenario[];
  trends?: Trend[]; // a page that shows nothing else has no spans and no steps
  strings: string[];
  counts: { spans: number; counters: number; runs: number };
}

/** Spans in the order of their start, a parent before its children; one array per field. */
export interface Spans {
  n: number;
  start: Float64Array;
  duration: Float64Array;
  category: Uint8Array;
  thread: Uint32Array;
  step: Int32Array; // -1: none
  run: Uint32Array; // 0: none
  iteration: Uint32Array;
  instance: Uint32Array;
  flags: Uint8Array; // 1: warm-up, 2: its run bound the shapes
  name: Uint32Array; // into strings
  text: Uint32Array; // what came with a scope
  label: Uint32Array; // a scope's own category; "": none
  parent: Int32Array; // position; -1: none
}
export const WARMUP = 1;
export const BOUND = 2;

export interface Counters {
  n: number;
  at: Float64Array;
  name: Uint32Array;
  step: Int32Array;
  value: Float64Array;
}

export interface Runs {
  n: number;
  span: Uint32Array; // position of the iteration's span
  wall: Float64Array; // without the recorder's cost
}

export interface Profile extends Header {
  title: string; // "before", "after" where there are two, else the model's name
  spans: Spans;
  counters: Counters;
  runs: Runs;
  end: number; // where the last span ends
}

/** A row of a comparison: sonde diff's own arithmetic. */
export interface Change {
  name: string;
  op: string;
  node: string;
  old_ns: number;
  new_ns: number;
  old_share: number;
  new_share: number;
  old_calls: number;
  new_calls: number;
  old_median_ns: number;
  new_median_ns: number;
  ratio: number;
  low: number | null;
  high: number | null;
  p: number;
  verdict: "same" | "faster" | "slower" | "unclear" | "new" | "gone";
}
export interface Comparison {
  schema: string;
  old: string;
  new: string;
  total: Change;
  rows: Record<"op" | "node" | "shape", Change[]>;
}

export interface PageData {
  profiles: Profile[]; // one, or two that are compared
  comparison: Comparison | null;
  live: boolean; // the file is still being written
}

/** Nothing but trends: the other views have nothing to show. */
export const onlyTrends = (p: Profile): boolean => Boolean(p.trends?.length) && !p.spans.n && !p.steps.length;

export const spanName = (p: Profile, i: number): string => p.strings[p.spans.name[i]];
export const spanCategory = (p: Profile, i: number): string =>
  p.strings[p.spans.label[i]] || CATEGORIES[p.spans.category[i]];
export const isWarmup = (p: Profile, i: number): boolean => (p.spans.flags[i] & WARMUP) !== 0;

interface RunNames {
  bySpan: Map<number, string>; // the span of a run
  byRun: Map<number, number>; // a run's number in the file ► its span
}
const runNames = new WeakMap<Profile, RunNames>();
function runNamesOf(p: Profile): RunNames {
  let made = runNames.get(p);
  if (made) return made;
  runNames.set(p, (made = { bySpan: new Map(), byRun: new Map() }));
  const { n, category, flags, run } = p.spans;
  for (let k = 0; k < p.runs.n; k++) made.bySpan.set(p.runs.span[k], `measured run ${k + 1}`);
  let warmups = 0;
  for (let i = 0; i < n; i++) {
    if (category[i] !== Cat.Iteration) continue;
    if (flags[i] & WARMUP && !made.bySpan.has(i)) made.bySpan.set(i, `warm-up ${++warmups}`);
    if (run[i] && made.bySpan.has(i) && !made.byRun.has(run[i])) made.byRun.set(run[i], i);
  }
  return made;
}
/** The span of the run that a span belongs to; -1: none. */
function runSpan(p: Profile, i: number): number {
  const { bySpan, byRun } = runNamesOf(p);
  for (let at = i, n = 0; at >= 0 && n < 64; at = p.spans.parent[at], n++) if (bySpan.has(at)) return at;
  return p.spans.run[i] ? (byRun.get(p.spans.run[i]) ?? -1) : -1;
}
/** The one numbering of runs that people read: "measured run 3", "warm-up 1"; "" for what is in no run. */
export const runName = (p: Profile, i: number): string => runNamesOf(p).bySpan.get(runSpan(p, i)) ?? "";
/** With the name that the file gives the run, which the timeline shows: "measured run 3 (Iteration2)". */
export function runTitle(p: Profile, i: number): string {
  const at = runSpan(p, i);
  if (at < 0) return "";
  const own = spanName(p, at);
  return /\d$/.test(own) ? `${runName(p, i)} (${own})` : runName(p, i);
}

/** What a step is called: its own operator and those fused behind it. */
export const stepTitle = (s: Step): string => (s.post_op ? `${s.op}+${s.post_op}` : s.op);
/** The nodes of the model behind a step; a step of a file that tells none is its own. */
export const stepNodes = (s: Step): Origin[] => (s.origins.length ? s.origins : [{ name: s.name, op: s.op }]);
/** A step that is no node's ("[Reorder]") goes by what it works on: the node that made it, or the tensor. */
export const stepNode = (s: Step): string =>
  s.name || (s.op.startsWith("[") && (s.origins[0]?.name || s.inputs.find((t) => t.name && !t.constant)?.name)) || stepTitle(s);

/** "1×3×224×224 f32" */
export function tensorText(t: Tensor): string {
  if (t.text) return t.text;
  if (!t.dims) return t.name ? "?" : "none";
  const dims = t.dims.length ? t.dims.map((d) => (d < 0 ? "?" : String(d))).join("×") : "scalar";
  return t.dtype ? `${dims} ${t.dtype}` : dims;
}
