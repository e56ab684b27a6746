// SPDX-License-Identifier: Apache-2.0
// The first view: how long a run takes, where the time goes, what the doctor says, and on what machine it was measured.
import { Charts } from "../chart";
import { onTheme } from "../colors";
import { append, button, empty, h, perFrame } from "../dom";
import * as f from "../format";
import { pictureButtons } from "../picture";
import type { Profile } from "../profile";
import type { Page } from "../state";
import type { Opened, View } from "../view";
import { arithmeticFacts, findings, machineFacts, modelFacts, warnings } from "./summary_facts";
import { latencyCharts, latencyRange } from "./summary_latency";
import { phaseChart } from "./summary_phases";
import { gapChart, legend, shareChart } from "./summary_shares";
import { slowest } from "./summary_steps";

type Child = Node | string | null;
const card = (title: string, kind: string, tools: Node | null, ...children: Child[]): HTMLElement =>
  h("section", { class: `card ${kind}`, "aria-label": title }, h("h2", null, title, tools), children);

const stat = (name: string, value: string, small = true): HTMLElement | null =>
  value ? h("div", { class: small ? "stat small" : "stat" }, h("b", null, value), h("span", null, name)) : null;

/** What the engine held at most; of other programs, what the process did. */
function peakMemory(p: Profile): HTMLElement | null {
  const { held_peak: held, rss_peak: rss } = p.memory;
  return held > 0 ? stat("peak memory", f.bytes(held)) : rss > 0 ? stat("peak memory of the process", f.bytes(rss)) : null;
}

function headline(p: Profile): HTMLElement {
  const { wall, iterations, runs_per_s, instances, ops } = p.summary;
  return h(
    "div",
    { class: "stats" },
    stat("median latency", f.time(wall.p50), false),
    stat("mean", f.time(wall.mean)),
    stat("p99", f.time(wall.p99)),
    stat("fastest … slowest", `${f.time(wall.min)} … ${f.time(wall.max)}`),
    stat(iterations === 1 ? "measured run" : "measured runs", f.count(iterations)),
    stat("throughput", runs_per_s > 0 ? `${f.digits(runs_per_s)}\u202fruns/s` : ""),
    stat("steps per run", ops > 0 ? f.count(ops) : ""),
    stat("instances at once", instances > 1 ? f.count(instances) : ""),
    peakMemory(p),
  );
}

function slowestRun(p: Profile): number {
  let at = 0;
  for (let i = 1; i < p.runs.n; i++) if (p.runs.wall[i] > p.runs.wall[at]) at = i;
  return at;
}

function latencyCards(charts: Charts, page: Page): HTMLElement[] {
  const p = page.profile;
  if (!p.runs.n) return [];
  const { wall } = p.summary;
  const [spread, strip] = latencyCharts(charts, p, (run) => page.selectSpan(p.runs.span[run]));
  const worst = slowestRun(p);
  const { cut } = latencyRange([{ name: "", wall: p.runs.wall, p50: wall.p50, p99: wall.p99, color: "" }]);
  const slowestButton = button(`Slowest: measured run ${f.count(worst + 1)}, ${f.time(p.runs.wall[worst])}`, () => showRun(page, worst), { class: "linklike" });
  return [
    card(
      "Distribution of the latency",
      "half",
      pictureButtons("distribution", () => spread.svg),
      spread.element,
      h("p", { class: "faint" }, `Runs by how long they took.${cut ? ` The last bar also counts slower ones, up to ${f.time(wall.max)}.` : ""}`),
    ),
    card(
      "Latency over the runs",
      "half",
      pictureButtons("runs", () => strip.svg),
      strip.element,
      h("p", { class: "faint" }, "In the order in which they ran. ", slowestButton),
    ),
  ];
}

function open(root: HTMLElement, page: Page): Opened {
  const p = page.profile;
  const notes = warnings(p);
  if (!p.summary.iterations) return openEmpty(root, p, notes);
  const charts = new Charts();
  const share = shareChart(charts, page);
  const list = legend(page);
  const gap = gapChart(charts, p);
  const phases = phaseChart(charts, p);
  const steps = slowest(page);
  const arithmetic = arithmeticFacts(p);
  const machine = machineFacts(p);
  const known = machine.childElementCount > 0; // other programs do not tell
  const last = arithmetic && known ? "" : arithmetic || known ? "half" : "wide"; // as many cards as there are fill the last row
  const cards = h("div", { class: "cards summary" });
  append(cards, [
    h("section", { class: "card wide headline-card", "aria-label": "Latency" }, headline(p), notes),
    card("Where the time goes", "wide", pictureButtons("where the time goes", () => share.svg), share.element, list.element),
    phases ? card("Training step", "wide", pictureButtons("training step", () => phases.svg), phases.element) : null,
    card("The doctor’s verdicts", "", null, ...findings(p)),
    card("Slowest steps", "", null, steps.element),
    card("Operators and the true latency", "", pictureButtons("operators and latency", () => gap.svg), h("p", { class: "faint" }, gapText(p)), gap.element),
    latencyCards(charts, page),
    card("Model", last, null, modelFacts(p)),
    known ? card("Machine", last, null, machine) : null,
    arithmetic ? card("Arithmetic", last, null, arithmetic) : null,
  ]);
  root.append(h("h2", { class: "visually-hidden" }, "Summary"), h("div", { class: "summary-box" }, cards));
  const mark = (): void => {
    share.redraw();
    list.mark();
    steps.mark();
  };
  const unwatch = onTheme(mark);
  const close = (): void => {
    unwatch();
    charts.close();
  };
  return { selected: perFrame(mark), close };
}

function showRun(page: Page, run: number): void {
  page.selectSpan(page.profile.runs.span[run]);
  page.go("timeline");
}

/** Why the sum of the operators is not the latency, in a sentence. */
function gapText(p: Profile): string {
  const operators = p.rows.op.reduce((sum, row) => sum + (row.bracket ? 0 : row.mean_ns), 0);
  const rest = p.summary.wall.mean - operators;
  const recorder = p.summary.cost_ns;
  const said = `A run takes ${f.time(p.summary.wall.mean)} on average; its operators take ${f.time(operators)} of it. `;
  const between =
    rest > 0.0005 * p.summary.wall.mean
      ? `The other ${f.time(rest)} (${f.percent(rest / p.summary.wall.mean)}) pass between operators: choosing the next step, waking threads, handling inputs and outputs. `
      : "";
  return said + between + (recorder !== null && recorder > 0 ? `What recording itself took, ${f.time(recorder)} per run, is in none of these figures.` : "");
}

function openEmpty(root: HTMLElement, p: Profile, notes: HTMLElement | null): Opened {
  append(root, [
    notes,
    empty(
      "No run was measured",
      p.summary.warmups
        ? `This profile holds ${f.count(p.summary.warmups)} warm-up ${p.summary.warmups === 1 ? "run" : "runs"} and no measured one. The timeline shows what was recorded. For latency and shares, measure a few runs:`
        : "This profile holds no run of a model. The timeline shows what was recorded. For latency and shares, profile some runs:",
      "sonde profile MODEL -n 100 -o report.html",
    ),
    h("div", { class: "cards" }, card("Model and machine", "", null, modelFacts(p), machineFacts(p)), p.findings.length ? card("The doctor’s verdicts", "", null, ...findings(p)) : null),
  ]);
  return {};
}

export const summary: View = {
  id: "summary",
  title: "Summary",
  shown: () => true,
  open,
};
