// SPDX-License-Identifier: Apache-2.0
// One palette. Operator types have the colours of Okabe and Ito, which people with any colour vision tell apart, in
// the order of their time; the rest is grey. Heat goes from pale to dark in one hue, so it also reads in print.
import type { Profile } from "./profile";

const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8f8400", "#6a51a3"];
const DARK = ["#4ba3dd", "#f0b640", "#2fbf95", "#dd94bd", "#7cc8f2", "#ec7d3a", "#c9bd35", "#a08bd6"];

export interface Theme {
  dark: boolean;
  paper: string;
  panel: string;
  ink: string;
  faint: string; // secondary text
  line: string;
  grey: string; // spans of no operator
  accent: string;
  good: string;
  bad: string;
}

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    dark: of("--dark") === "1",
    paper: of("--paper"),
    panel: of("--panel"),
    ink: of("--ink"),
    faint: of("--faint"),
    line: of("--line"),
    grey: of("--grey"),
    accent: of("--accent"),
    good: of("--good"),
    bad: of("--bad"),
  };
}

const orders = new WeakMap<Profile, Map<string, number>>();
/** One order of types for all of these profiles: that of the first one, then what only the others have. */
export function orderTypes(profiles: Profile[]): Map<string, number> {
  const order = new Map<string, number>();
  for (const p of profiles) {
    for (const row of p.rows.op) if (!row.bracket && !order.has(row.op)) order.set(row.op, order.size);
    orders.set(p, order);
  }
  return order;
}
/** The colour of an operator type in this profile: the same in every view, and in both profiles of a comparison. */
export function opColor(p: Profile, op: string, dark: boolean): string {
  const order = orders.get(p) ?? orderTypes([p]);
  const k = order.get(op);
  const set = dark ? DARK : LIGHT;
  return k === undefined || k >= set.length ? (dark ? "#8b949e" : "#7d8590") : set[k];
}

const CATEGORY_LIGHT = ["#8a9bb0", "#b6c2d1", "#0072b2", "#a79b8c", "#c9a27a", "#7fb5a0", "#cc79a7", "#9a7fc0"];
const CATEGORY_DARK = ["#5d6f86", "#44546a", "#4ba3dd", "#7c7265", "#8e7050", "#4f8a74", "#b36f95", "#8468ae"];
export const categoryColor = (category: number, dark: boolean): string =>
  (dark ? CATEGORY_DARK : CATEGORY_LIGHT)[category] ?? "#888888";

/** 0…1 as a colour from the paper to a strong blue (light) or to a bright one (dark). */
export function heat(share: number, dark: boolean): string {
  const t = Math.sqrt(Math.min(1, Math.max(0, share)));
  const from = dark ? [38, 45, 56] : [244, 247, 250];
  const to = dark ? [255, 176, 66] : [178, 66, 0];
  const mix = from.map((v, i) => Math.round(v + (to[i] - v) * t));
  return `rgb(${mix[0]}, ${mix[1]}, ${mix[2]})`;
}

/** Black or white, whichever reads better on a colour "#rrggbb" or "rgb(r, g, b)". */
export function inkOn(color: string): string {
  const parts = color.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16))
    : (color.match(/\d+/g) ?? ["0", "0", "0"]).slice(0, 3).map(Number);
  const linear = parts.map((v) => ((v / 255) <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return light > 0.179 ? "#000000" : "#ffffff"; // at least 4.5:1 on every colour
}

/** Runs `changed` when the colours of the page change. */
export function onTheme(changed: () => void): () => void {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const watch = new MutationObserver(changed);
  media.addEventListener("change", changed);
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    media.removeEventListener("change", changed);
    watch.disconnect();
  };
}
