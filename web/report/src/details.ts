// SPDX-License-Identifier: Apache-2.0
// The panel of what is selected: figures, the model's nodes behind a fused step, tensors, attributes; and the ways to
// see the same in other views.
import { append, button, clear, h } from "./dom";
import * as f from "./format";
import { Cat, type Profile, type Row, ROW_KEYS, runTitle, spanCategory, spanName, stepNode, stepNodes, stepTitle, type Tensor, tensorText } from "./profile";
import type { Page } from "./state";

const NODES = 1000; // of a fused step, listed

export type Fact = [name: string, value: string | Node | null];
export function facts(list: Fact[]): HTMLElement {
  return h(
    "dl",
    { class: "facts" },
    list.map(([name, value]) => (value === null || value === "" ? null : [h("dt", null, name), h("dd", null, value)])),
  );
}

const section = (title: string, ...children: (Node | null)[]): HTMLElement => h("section", null, h("h3", null, title), ...children);

export function rowFacts(row: Row): Fact[] {
  return [
    ["time per run", `${f.time(row.usual_ns)} (${f.percent(row.usual_share)})`],
    ["mean per run", `${f.time(row.mean_ns)} (${f.percent(row.share)} of the mean)`],
    ["calls per run", f.count(row.calls)],
    ["per call", row.calls > 0 ? `mean ${f.time(row.call_mean_ns)}; median ${f.time(row.call_p50_ns)}, p99 ${f.time(row.call_p99_ns)}` : null],
    ["speed", f.gflops(row.flops, row.usual_ns)],
    ["bandwidth", f.bandwidth(row.bytes, row.usual_ns)],
    ["of the peak", row.roofline === null ? null : `${f.percent(row.roofline)} (bound by ${row.bound})`],
    ["arithmetic", row.arithmetic],
    ["kernel", row.kernel ? h("code", null, row.kernel) : null],
    ["instructions per cycle", row.hw && row.hw.cycles > 0 ? f.digits(row.hw.instructions / row.hw.cycles) : null],
    ["cache misses", row.hw ? f.count(Math.round(row.hw.cache_misses)) : null],
    ["branch misses", row.hw ? f.count(Math.round(row.hw.branch_misses)) : null],
  ];
}

/** A line for the name and one for the shape: side by side there is no room for both. */
function tensors(list: Tensor[]): HTMLElement {
  const made = facts(
    list.map((t) => [
      f.shorten(f.plain(t.name || "(absent)"), 40),
      `${tensorText(t)}${t.constant ? ", weight" : ""}${t.zeros !== undefined && t.zeros >= 0 ? `, ${f.percent(t.zeros)} zeros` : ""}`,
    ]),
  );
  made.classList.add("stacked");
  return made;
}

function stepSections(p: Profile, index: number): (HTMLElement | null)[] {
  const step = p.steps[index];
  const nodes = stepNodes(step);
  return [
    section(
      nodes.length > 1 ? `${f.count(nodes.length)} nodes of the model` : "Node of the model",
      facts(nodes.slice(0, NODES).map((o) => [o.op, f.shorten(f.plain(o.name || "(unnamed)"), 120)])),
      nodes.length > NODES ? h("p", { class: "faint" }, `and ${f.count(nodes.length - NODES)} more`) : null,
    ),
    step.inputs.length ? section("Inputs", tensors(step.inputs)) : null,
    step.outputs.length ? section("Outputs", tensors(step.outputs)) : null,
    step.attributes ? section("Attributes", facts(step.attributes.split(";").map((a) => {
      const at = a.indexOf("=");
      return at < 0 ? [a, ""] : [a.slice(0, at), f.shorten(f.plain(a.slice(at + 1)), 200)];
    }))) : null,
  ];
}

/** Nothing selected: the panel is away. */
export function showDetails(panel: HTMLElement, page: Page): void {
  clear(panel);
  const { selection: sel, profile: p } = page;
  panel.hidden = sel.kind === "none";
  if (panel.hidden) return;
  const only = sel.steps.size === 1 ? [...sel.steps][0] : -1;
  const step = only >= 0 ? p.steps[only] : null;
  const row =
    sel.kind === "span" || sel.kind === "step"
      ? step && step.rows[1] >= 0 ? p.rows.node[step.rows[1]] : null
      : sel.kind === "none" ? null : p.rows[sel.kind][sel.index];
  append(panel, [
    button("×", () => page.clear(), { class: "close", "aria-label": "Close details" }),
    h("h2", { dir: "auto" }, f.shorten(f.plain(step ? stepTitle(step) : (isRun(p, sel.span) && runTitle(p, sel.span)) || sel.title), 160)),
    step ? h("p", { class: "faint", dir: "auto" }, f.shorten(f.plain(stepNode(step)), 300)) : null,
  ]);
  if (sel.span >= 0) panel.append(section("This span", facts(spanFacts(p, sel.span))));
  if (row) panel.append(section(sel.steps.size > 1 ? `All ${sel.steps.size} steps` : "Over all runs", facts(rowFacts(row))));
  if (step?.control) panel.append(h("p", { class: "faint" }, "Without its bodies: what these take is in the figures of their own steps."));
  if (step?.folded) panel.append(h("p", { class: "faint" }, "Computed when the model was loaded: it takes no time in a run."));
  if (step) append(panel, stepSections(p, only));
  else if (sel.steps.size) panel.append(section("Steps", stepList(page, [...sel.steps])));
  panel.append(links(page));
}

const isRun = (p: Profile, span: number): boolean => span >= 0 && p.spans.category[span] === Cat.Iteration;

function spanFacts(p: Profile, i: number): Fact[] {
  const s = p.spans;
  return [
    ["name", f.shorten(f.plain(spanName(p, i)), 120)],
    ["kind", spanCategory(p, i)],
    ["start", f.time(s.start[i])],
    ["duration", f.time(s.duration[i])],
    ["thread", p.threads[s.thread[i]]?.name ?? String(s.thread[i])],
    ["run", runTitle(p, i)],
    ["text", f.shorten(f.plain(p.strings[s.text[i]]), 400)],
    ["parent", s.parent[i] >= 0 ? f.shorten(f.plain(spanName(p, s.parent[i])), 80) : null],
  ];
}

function stepList(page: Page, steps: number[]): HTMLElement {
  const p = page.profile;
  const time = (i: number): number => (p.steps[i].rows[1] >= 0 ? p.rows.node[p.steps[i].rows[1]].usual_ns : 0);
  const order = steps.sort((a, b) => time(b) - time(a));
  return h(
    "div",
    null,
    order.slice(0, 30).map((i) =>
      h("div", null, button(f.shorten(f.plain(stepNode(p.steps[i])), 34), () => page.selectStep(i), { class: "linklike" }), h("span", { class: "faint" }, ` ${f.time(time(i))}`)),
    ),
    order.length > 30 ? h("p", { class: "faint" }, `and ${order.length - 30} more`) : null,
  );
}

function links(page: Page): HTMLElement {
  const there: [string, string][] = [
    ["timeline", "Timeline"],
    ["operators", "Operators"],
    ["graph", "Graph"],
    ["memory", "Memory"],
    ["roofline", "Roofline"],
  ];
  const made = section("Show in", h("div", { class: "bar" }, there.filter(([id]) => id !== page.view).map(([id, title]) => button(title, () => page.go(id)))));
  made.classList.add("tools");
  return made;
}

export const rowKeyName: Record<(typeof ROW_KEYS)[number], string> = { op: "Type", node: "Node", shape: "Shape", kernel: "Kernel" };
