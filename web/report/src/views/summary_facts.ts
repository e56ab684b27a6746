// SPDX-License-Identifier: Apache-2.0
// What is known about model, machine and arithmetic, the doctor's verdicts, and what a reader must know before he
// trusts the figures.
import { brief } from "../chart";
import { type Fact, facts } from "../details";
import { h } from "../dom";
import * as f from "../format";
import { type Finding, type Profile, type Row, stepNodes } from "../profile";

const text = (value: string, most = 200): string => (value ? brief(value, most) : "");

/** Nodes of the model: one that was bound to two shapes counts once. */
function nodeCount(p: Profile): number {
  const named = new Set<string>();
  let nameless = 0;
  for (const step of p.steps) {
    for (const { name, op } of stepNodes(step)) {
      if (name) named.add(`${op}\u0000${name}`);
      else nameless++;
    }
  }
  return named.size + nameless;
}

export function modelFacts(p: Profile): HTMLElement {
  const folded = p.steps.reduce((n, step) => n + (step.folded ? 1 : 0), 0);
  const nodes = nodeCount(p);
  const flops = p.rows.op.reduce((sum, row) => sum + row.flops, 0);
  const list: Fact[] = [
    ["model", text(p.model, 300)],
    ["file", p.model ? "" : text(p.title, 300)],
    ["nodes of the model", nodes > 0 ? f.count(nodes) : ""],
    ["steps", p.steps.length ? `${f.count(p.steps.length)}${folded ? `, ${f.count(folded)} of them computed while loading` : ""}` : ""],
    ["work per run", flops > 0 ? f.flops(flops) : ""],
    ["speed", f.gflops(flops, p.summary.wall.p50)],
    ["weights", p.memory["constants"] > 0 ? f.bytes(p.memory["constants"]) : ""],
    ["runs", `${f.count(p.summary.iterations)} measured, ${f.count(p.summary.warmups)} warm-up`],
    ["recorded by", text(/^\d/.test(p.sonde) ? `sonde ${p.sonde}, level ${p.level}` : p.sonde)],
    ["recorded at", p.start_unix_ms > 0 ? new Date(p.start_unix_ms).toLocaleString() : ""],
    ["labels", Object.entries(p.labels ?? {}).map(([k, v]) => `${text(k, 60)}=${text(v, 120)}`).join(", ")],
    ["recorder", p.record_ns !== null && p.record_ns > 0 ? `${f.time(p.record_ns)} per step, subtracted` : ""],
  ];
  return facts(list);
}

export function machineFacts(p: Profile): HTMLElement {
  const m = p.machine;
  const names = ["L2", "L3"];
  const list: Fact[] = [
    ["processor", text(m.cpu)],
    ["instruction set", text(m.cpu_level)],
    ["cores, threads", m.cores > 0 ? `${f.count(m.cores)}, ${m.threads > 0 ? f.count(m.threads) : "–"}` : m.threads > 0 ? `–, ${f.count(m.threads)}` : ""],
    ["precision", text(m.precision)],
    ["peak", Object.entries(m.peak_gops).filter(([, v]) => v > 0).map(([k, v]) => `${text(k, 20)} ${f.rate(v * 1e9, "FLOP/s")}`).join("; ")],
    ["memory", m.peak_gbps > 0 ? f.rate(m.peak_gbps * 1e9, "B/s") : ""],
    ["caches", m.caches.map((c, i) => (c.gbps > 0 ? `${names[i] ?? `L${i + 2}`} ${f.bytes(c.bytes)}, ${f.rate(c.gbps * 1e9, "B/s")}` : "")).filter(Boolean).join("; ")],
    ["processor time", p.usage && p.usage.cpu_ns > 0 ? f.time(p.usage.cpu_ns) : ""],
    ["page faults", p.usage ? `${f.count(p.usage.minor_faults)} minor, ${f.count(p.usage.major_faults)} major` : ""],
    ["context switches", p.usage ? `${f.count(p.usage.voluntary)} voluntary, ${f.count(p.usage.involuntary)} involuntary` : ""],
    ["counters", text(p.counters_note, 400)],
  ];
  return facts(list);
}

export interface Mix {
  name: string; // "f32"; "no arithmetic"
  rows: Row[];
  ns: number;
  share: number;
  flops: number;
}
/** Rows by node added up by the arithmetic of their products, most time first. */
export function arithmeticMix(p: Profile): Mix[] {
  const found = new Map<string, Mix>();
  for (const row of p.rows.node) {
    const name = row.bracket ? row.name : row.arithmetic || "no arithmetic";
    let mix = found.get(name);
    if (!mix) found.set(name, (mix = { name, rows: [], ns: 0, share: 0, flops: 0 }));
    mix.rows.push(row);
    mix.ns += row.usual_ns;
    mix.share += row.usual_share;
    mix.flops += row.flops;
  }
  return [...found.values()].sort((a, b) => b.ns - a.ns);
}

export function arithmeticFacts(p: Profile): HTMLElement | null {
  const mix = arithmeticMix(p).filter((m) => !m.rows[0].bracket && m.ns > 0);
  if (!mix.some((m) => m.flops > 0)) return null;
  return facts(
    mix.map((m): Fact => [
      text(m.name, 40),
      `${f.time(m.ns)} (${f.percent(m.share)})${m.flops > 0 ? `, ${f.flops(m.flops)} at ${f.gflops(m.flops, m.ns)}` : ""}`,
    ]),
  );
}

const ORDER: Record<Finding["severity"], number> = { slow: 0, note: 1, good: 2 };
const TAG: Record<Finding["severity"], [mark: string, color: string]> = { slow: ["▲ slow", "bad"], note: ["● note", "note"], good: ["✓ good", "good"] };

const MOST_FINDINGS = 40;

/** Peaks that were not measured are told once, by what they are wanted for. */
function distinct(list: Finding[]): Finding[] {
  const roofline = list.find((x) => x.topic === "roofline" && x.remedy);
  return list.filter((x) => !(roofline && x.topic === "peaks" && x.remedy === roofline.remedy));
}

/** What may gain most comes first; what is good is folded. */
export function findings(p: Profile): HTMLElement[] {
  if (!p.findings.length) {
    const own = /^\d/.test(p.sonde);
    return [
      h("p", { class: "faint" }, own ? "This profile carries no verdicts. The doctor looks for what makes a model slow and measures the remedies:" : "Profiles of other programs carry no verdicts. To have sonde examine the model:"),
      h("pre", null, h("code", null, "sonde doctor MODEL")),
    ];
  }
  const sorted = distinct(p.findings).sort((a, b) => (b.gain ?? 0) - (a.gain ?? 0) || (ORDER[a.severity] ?? 1) - (ORDER[b.severity] ?? 1));
  const good = sorted.filter((x) => x.severity === "good");
  const open = sorted.filter((x) => x.severity !== "good").slice(0, MOST_FINDINGS).map(verdict);
  if (!good.length) return open;
  const folded = h("details", { class: "good-ones" }, h("summary", null, `${f.count(good.length)} that ${good.length === 1 ? "is" : "are"} good`), good.slice(0, MOST_FINDINGS).map(verdict));
  return [...(open.length ? open : [h("p", { class: "faint" }, "Nothing stands out that would make this model faster.")]), folded];
}

function verdict(x: Finding): HTMLElement {
  const [mark, color] = TAG[x.severity] ?? TAG.note;
  return h(
    "div",
    { class: "finding" },
    h("span", { class: `tag ${color}` }, mark),
    h("h3", { dir: "auto" }, text(x.topic, 80)),
    h("p", { class: "said", dir: "auto" }, text(x.finding, 600)),
    x.evidence ? h("p", { dir: "auto" }, text(x.evidence, 600)) : null,
    x.remedy ? h("p", { dir: "auto" }, h("b", null, "Remedy: "), text(x.remedy, 600)) : null,
  );
}

/** What makes the figures less than the whole truth. */
export function warnings(p: Profile): HTMLElement | null {
  const list: string[] = [];
  if (p.dropped > 0) list.push(`${f.count(p.dropped)} records did not fit and are missing: times of operators are too small, and [Other] too large.`);
  if (p.note) list.push(text(p.note, 600));
  if (!list.length) return null;
  return h("ul", { class: "warnings" }, list.map((line) => h("li", { dir: "auto" }, line)));
}
