// SPDX-License-Identifier: Apache-2.0
// What was held when the profile was taken, by kind, as bars.
import { h } from "../dom";
import * as f from "../format";
import type { Profile } from "../profile";

const KINDS: Record<string, [name: string, what: string]> = {
  mapped: ["model files, mapped", "in the address space; only what is read is in memory"],
  constants: ["weights, other", "weights that are not in a mapped file"],
  packed: ["weights, packed", "in the form the kernels read"],
  arenas: ["activations", "the arenas of all bindings that ran"],
  workspaces: ["workspace", "scratch memory of single steps"],
  outputs: ["outputs", "handed to the caller"],
  held: ["held by the context", "all that its allocator has given out now"],
  held_peak: ["held at most", "the same, at its peak"],
  rss: ["process, resident", "physical memory of the whole process now"],
  rss_anon: ["of that anonymous", "heap, stacks and arenas"],
  rss_file: ["of that files", "pages of mapped files"],
  rss_peak: ["process at most", "physical memory of the process at its peak"],
};

/** null: the profile has none. */
export function totals(p: Profile): HTMLElement | null {
  const keys = [...Object.keys(KINDS), ...Object.keys(p.memory).filter((key) => !(key in KINDS))];
  const rows = keys.filter((key) => p.memory[key] > 0);
  if (!rows.length) return null;
  const most = rows.reduce((a, key) => Math.max(a, p.memory[key]), 1);
  return h(
    "section",
    { class: "card wide" },
    h("h2", null, "Totals"),
    h(
      "ul",
      { class: "memory-totals" },
      rows.map((key) => {
        const [name, what] = KINDS[key] ?? [f.shorten(f.plain(key), 40), ""];
        const bar = h("span", { class: "memory-bar", "aria-hidden": "true" });
        bar.style.width = `${(100 * p.memory[key]) / most}%`;
        return h(
          "li",
          null,
          h("span", { class: "memory-name" }, name),
          h("b", null, f.bytes(p.memory[key])),
          h("span", { class: "memory-track" }, bar),
          h("span", { class: "faint" }, what),
        );
      }),
    ),
  );
}
