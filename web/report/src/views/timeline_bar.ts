// SPDX-License-Identifier: Apache-2.0
// The controls around the timeline's canvas: search, runs, zoom; and the titles of lanes as buttons.
import { button, h } from "../dom";
import * as f from "../format";
import type { Profile } from "../profile";
import { type Item, ROW } from "./timeline_scene";

/** The last run that began at `t` or before, as a place in the profile's runs; -1: none. */
export function runAt(p: Profile, t: number): number {
  let low = 0;
  let high = p.runs.n;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (p.spans.start[p.runs.span[mid]] <= t) low = mid + 1;
    else high = mid;
  }
  return low - 1;
}

export interface RunPicker {
  element: HTMLElement | null; // null: there is no run
  /** The run in sight, from 0 on. */
  now(run: number): void;
}
export function runPicker(p: Profile, inSight: () => number, show: (run: number) => void): RunPicker {
  const { n } = p.runs;
  const go = (run: number): void => {
    if (run >= 0) show(Math.min(n - 1, run));
  };
  const number: HTMLInputElement = h("input", {
    type: "number",
    min: 1,
    max: n,
    class: "tl-run",
    "aria-label": "Run to show",
    onchange: () => go(Math.floor(Number(number.value)) - 1),
  });
  // Warm-ups are counted on their own.
  const measured = p.summary.warmups > 0 && n === p.summary.iterations ? " measured" : "";
  return {
    element: n
      ? h(
          "span",
          { class: "tl-runs" },
          "Run ",
          button("‹", () => go(Math.max(0, inSight() - 1)), { "aria-label": "Previous run", title: "Previous run" }),
          number,
          button("›", () => go(inSight() + 1), { "aria-label": "Next run", title: "Next run" }),
          h("span", { class: "faint" }, ` of ${f.count(n)}${measured}`),
        )
      : null,
    now(run) {
      if (document.activeElement !== number) number.value = run < 0 ? "" : String(run + 1);
    },
  };
}

/** Buttons over the titles that the canvas shows: lanes collapse by mouse, keyboard and screen reader. */
export function foldButtons(items: Item[], press: (item: Item) => void, focused: (item: Item) => void): HTMLButtonElement[] {
  return items.map((item) => {
    const fold = button("", () => press(item), {
      class: "tl-fold",
      "aria-expanded": String(!item.collapsed),
      "aria-label": `${item.kind === "lane" ? "Thread" : "Counter"} ${f.shorten(item.title, 80)}`,
      title: f.shorten(item.title, 200),
      onfocus: () => focused(item),
    });
    placeFold(fold, item);
    return fold;
  });
}
export function placeFold(fold: HTMLElement, item: Item): void {
  fold.style.top = `${item.y}px`;
  fold.style.height = `${Math.min(item.height, 2 * ROW)}px`;
}
