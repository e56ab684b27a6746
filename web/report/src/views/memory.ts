// SPDX-License-Identifier: Apache-2.0
// Memory: what was held in all, bytes over time, the lives of tensors at their places in the arena, and who holds the
// peak.
import { onTheme } from "../colors";
import { clear, empty, h } from "../dom";
import * as f from "../format";
import type { Page } from "../state";
import type { Opened, View } from "../view";
import { counterCharts } from "./memory_counters";
import { Lives, livesLegend } from "./memory_lives";
import { type Plan, plansOf } from "./memory_plan";
import { totals } from "./memory_totals";

const ADVICE = "sonde records where every value lies, how long it lives, and what is allocated over time. Profiles of other programs carry none of it.";
const COMMAND = "sonde profile MODEL --memory -o report.html";

function tableSelect(plans: Plan[], chosen: Plan, changed: (plan: Plan) => void): HTMLElement | null {
  if (plans.length < 2) return null;
  const select = h(
    "select",
    { "aria-label": "Binding", onchange: () => changed(plans[select.selectedIndex]) },
    plans.map((plan) => h("option", { selected: plan === chosen }, `binding ${plan.table}: ${f.count(plan.steps)} steps, peak ${f.bytes(plan.live[plan.peak])}`)),
  );
  return select;
}

function openMemory(root: HTMLElement, page: Page): Opened {
  const p = page.profile;
  const plans = plansOf(p);
  const charts = counterCharts(page);
  const sums = totals(p);
  if (!plans.length && !charts.length && !sums) {
    root.append(empty("No memory in this profile", ADVICE, COMMAND));
    return {};
  }
  const place = h("div", { class: "memory-part" });
  let lives: Lives | null = null;
  const opened: Opened = {};
  const showLives = (plan: Plan): void => {
    clear(place);
    const choose = (other: Plan): void => {
      for (const key of ["steps", "step"]) page.set(key, null);
      page.set("table", String(other.table));
      showLives(other);
    };
    lives = new Lives(page, plan, tableSelect(plans, plan, choose));
    lives.element.append(livesLegend(p, plan));
    place.append(lives.element, lives.holders);
    lives.resized();
    opened.search = lives.search;
  };
  const cards = h("div", { class: "cards" }, sums, charts.map((chart) => chart.element), place);
  root.append(cards);
  if (plans.length) {
    const [step] = page.selection.steps;
    const told = plans.find((plan) => String(plan.table) === page.params.get("table"));
    showLives(told ?? plans.find((plan) => plan.table === p.steps[step]?.table) ?? plans[0]);
  } else place.append(empty("No tensor lifetimes", ADVICE, COMMAND));
  for (const chart of charts) chart.show();
  let width = root.clientWidth;
  const unwatch = onTheme(() => {
    for (const chart of charts) chart.show();
    lives?.recolor();
    const legend = lives?.element.querySelector(".legend");
    const plan = lives?.plan;
    if (legend && plan) legend.replaceWith(livesLegend(p, plan));
  });
  return Object.assign(opened, {
    close: () => {
      unwatch();
      for (const chart of charts) chart.close();
    },
    selected: () => lives?.selected(),
    resized: () => {
      if (root.clientWidth === width) return; // a chart made anew would forget its zoom
      width = root.clientWidth;
      for (const chart of charts) chart.show();
      lives?.resized();
    },
    key: (e: KeyboardEvent) => lives?.key(e) ?? false,
  });
}

export const memory: View = {
  id: "memory",
  title: "Memory",
  keys: [
    ["W S", "zoom the lifetimes"],
    ["A D", "move along the steps"],
    ["← →", "choose a step; its holders are listed"],
    ["Home", "the step of the peak"],
    ["0", "all steps"],
  ],
  shown: () => true,
  open: openMemory,
};
