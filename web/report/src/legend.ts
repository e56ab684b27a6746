// SPDX-License-Identifier: Apache-2.0
// Which colour stands for which operator type, below pictures that have no room for names.
import { opColor, theme } from "./colors";
import { h } from "./dom";
import * as f from "./format";
import type { Profile } from "./profile";

const SHOWN = 8; // as many as there are colours

/** Those of these types that have a colour of their own, in the order of their time. */
export function opLegend(p: Profile, ops: ReadonlySet<string>): HTMLElement {
  const { dark } = theme();
  const shown = [...new Set(p.rows.op.filter((row) => !row.bracket && ops.has(row.op)).map((row) => row.op))].slice(0, SHOWN);
  return h(
    "div",
    { class: "legend" },
    shown.map((op) => {
      const mark = h("span", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = opColor(p, op, dark);
      return h("span", { dir: "auto" }, mark, f.shorten(f.plain(op), 30));
    }),
  );
}
