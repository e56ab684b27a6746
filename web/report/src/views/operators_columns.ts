// SPDX-License-Identifier: Apache-2.0
// The rows and columns of the operators' table.
import { opColor } from "../colors";
import * as f from "../format";
import { nodesText } from "../names";
import { type Profile, type Row, type RowKey, tensorText } from "../profile";
import type { Column } from "../table";
import { arithmeticMix } from "./summary_facts";

type By = RowKey | "precision";
export interface Line {
  row: Row;
  index: number; // in the profile's rows; of a precision: its place
  count: number; // rows by node behind it
}

const made = new WeakMap<Profile, Map<By, Line[]>>();
export function linesOf(p: Profile, by: By): Line[] {
  let all = made.get(p);
  if (!all) made.set(p, (all = new Map()));
  let lines = all.get(by);
  if (!lines) all.set(by, (lines = by === "precision" ? precisions(p) : p.rows[by].map((row, index) => ({ row, index, count: 1 }))));
  return lines;
}

function precisions(p: Profile): Line[] {
  return arithmeticMix(p).map((mix, index) => {
    const sum = (of: (row: Row) => number): number => mix.rows.reduce((total, row) => total + of(row), 0);
    const calls = sum((row) => row.calls);
    const mean = sum((row) => row.mean_ns);
    const first = mix.rows[0];
    const row: Row = {
      name: mix.name, op: "", kernel: "", node: "", calls,
      mean_ns: mean, share: sum((r) => r.share), usual_ns: mix.ns, usual_share: mix.share,
      call_mean_ns: calls > 0 ? mean / calls : NaN, call_p50_ns: NaN, call_p99_ns: NaN,
      flops: mix.flops, bytes: sum((r) => r.bytes), roofline: null, bound: "", arithmetic: first.arithmetic, step: -1,
      bracket: Boolean(first.bracket), direct: mix.rows.some((r) => r.direct),
    };
    return { row, index, count: mix.rows.length };
  });
}

/** What the filter looks at. "arithmetic=f32;" finds exactly the rows of one precision. */
export function words({ row }: Line): string {
  const precision = row.bracket ? "" : `arithmetic=${row.arithmetic || "none"};`;
  return `${row.name} ${row.op} ${row.node} ${row.kernel} ${row.bound} ${precision}`;
}

const figure = (v: number, text: (v: number) => string): string => (Number.isFinite(v) && v > 0 ? text(v) : "");
const number = (v: number | null): number | null => (v !== null && Number.isFinite(v) ? v : null);
const speed = (n: number, ns: number): number | null => (n > 0 && ns > 0 ? n / ns : null); // G per second

/** What "Time per run" is, wherever the page says it of an operator. */
export const USUAL = "Median of the runs it is in; of what some runs leave out, times the share of runs. One slow run does not move it.";

/** Why a rate may be above the machine's peak; null: no row here has such a rate. */
export const directNote = (rows: Row[]): string | null =>
  rows.some((row) => row.direct && row.flops > 0)
    ? "Speeds and shares of the peak of Winograd convolutions are of direct arithmetic; they multiply 2.25 to 4 times less."
    : null;

/** What the longest name needs, in rem; figures beside it need none of that room. */
function nameRoom(lines: Line[]): number {
  const longest = lines.reduce((most, { row }) => Math.max(most, row.name.length), 0);
  return Math.min(18, Math.max(8, 3 + 0.5 * longest));
}

export function columnsOf(p: Profile, by: By, lines: Line[], look: { dark: boolean }): Column<Line>[] {
  const input = ({ row }: Line): string => {
    const tensor = row.step >= 0 ? p.steps[row.step]?.inputs[0] : undefined;
    return tensor ? tensorText(tensor) : "";
  };
  const titles: Record<By, string> = { op: "Type", node: "Operator", shape: "Shapes of the inputs", kernel: "Kernel", precision: "Arithmetic" };
  const all: Column<Line>[] = [
    {
      id: "name",
      title: titles[by],
      text: ({ row }) => row.name || "(none)",
      color: ({ row }) => (by === "precision" ? null : row.bracket ? "var(--grey)" : opColor(p, row.op, look.dark)),
      width: by === "shape" || by === "kernel" ? "minmax(14rem, 1.4fr)" : `minmax(${nameRoom(lines)}rem, 1fr)`,
    },
    { id: "op", title: "Type", text: ({ row }) => (by === "shape" || by === "kernel" ? row.op : ""), width: "minmax(7rem, 0.7fr)" },
    { id: "node", title: "Nodes", hint: "The nodes of the model that the step computes", name: ({ row }) => nodesText(row.node), text: ({ row }) => (by === "node" ? row.node : ""), width: "minmax(12rem, 1.2fr)" },
    { id: "time", title: "Time per run", hint: USUAL, unit: "ns", number: true, text: ({ row }) => f.time(row.usual_ns), value: ({ row }) => row.usual_ns, width: "8.6rem" },
    { id: "share", title: "Share", hint: "Of the times per run of all rows", unit: "0…1", number: true, text: ({ row }) => f.percent(row.usual_share), value: ({ row }) => row.usual_share, bar: ({ row }) => row.usual_share },
    { id: "average", title: "Mean per run", hint: "Mean over all measured runs, slow ones included: these add up to the mean latency", unit: "ns", number: true, text: ({ row }) => f.time(row.mean_ns), value: ({ row }) => row.mean_ns, width: "8.6rem" },
    { id: "nodes", title: "Nodes", number: true, text: ({ count }) => (by === "precision" ? f.count(count) : ""), value: ({ count }) => count, width: "5rem" },
    { id: "calls", title: "Calls", hint: "Per run", number: true, text: ({ row }) => figure(row.calls, f.count), value: ({ row }) => row.calls, width: "5rem" },
    { id: "mean", title: "Mean call", hint: "Mean of a call", unit: "ns", number: true, text: ({ row }) => figure(row.call_mean_ns, f.time), value: ({ row }) => number(row.call_mean_ns), width: "6rem" },
    { id: "p50", title: "p50 call", hint: "Half of the calls take at most this", unit: "ns", number: true, text: ({ row }) => figure(row.call_p50_ns, f.time), value: ({ row }) => number(row.call_p50_ns), width: "6rem" },
    { id: "p99", title: "p99 call", hint: "99 % of the calls take at most this", unit: "ns", number: true, text: ({ row }) => figure(row.call_p99_ns, f.time), value: ({ row }) => number(row.call_p99_ns), width: "6rem" },
    { id: "gflops", title: "Speed", hint: "Arithmetic operations per second", unit: "GFLOP/s", number: true, text: ({ row }) => f.gflops(row.flops, row.usual_ns), value: ({ row }) => speed(row.flops, row.usual_ns), width: "8.4rem" },
    { id: "gbps", title: "Bandwidth", hint: "Bytes read and written per second", unit: "GB/s", number: true, text: ({ row }) => f.bandwidth(row.bytes, row.usual_ns), value: ({ row }) => speed(row.bytes, row.usual_ns) },
    { id: "roofline", title: "Of the peak", hint: "Speed or bandwidth, whichever comes nearer to what the machine can do", unit: "0…1", number: true, text: ({ row }) => (row.roofline === null ? "" : f.percent(row.roofline)), value: ({ row }) => row.roofline, bar: ({ row }) => row.roofline ?? 0 },
    { id: "bound", title: "Bound by", text: ({ row }) => row.bound, width: "6.4rem" },
    { id: "ipc", title: "IPC", hint: "Instructions per cycle", number: true, text: ({ row }) => (row.hw && row.hw.cycles > 0 ? f.digits(row.hw.instructions / row.hw.cycles) : ""), value: ({ row }) => (row.hw && row.hw.cycles > 0 ? row.hw.instructions / row.hw.cycles : null), width: "5rem" },
    { id: "arithmetic", title: "Arithmetic", text: ({ row }) => (by === "precision" ? "" : row.arithmetic), width: "7rem" },
    { id: "input", title: "First input", text: (line) => (by === "node" ? input(line) : ""), width: "11rem" },
    { id: "kernel", title: "Kernel", text: ({ row }) => (by === "kernel" ? "" : row.kernel), width: "minmax(12rem, 1.2fr)" },
  ];
  return all.filter((c) => c.id === "name" || c.id === "time" || lines.some((line) => c.text(line) !== ""));
}
