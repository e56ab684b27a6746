// SPDX-License-Identifier: Apache-2.0
// Finds steps of the graph by the names of nodes, types of operators and names of tensors.
import { h } from "../dom";
import { type Profile, stepNodes, stepTitle } from "../profile";
import type { GraphView } from "./graph";

const words = new WeakMap<Profile, string[]>(); // by step, lower case
function wordsOf(p: Profile, i: number): string {
  let all = words.get(p);
  if (!all) words.set(p, (all = []));
  const step = p.steps[i];
  return (all[i] ??= [
    stepTitle(step),
    step.name,
    ...stepNodes(step).map((n) => `${n.op} ${n.name}`),
    ...step.inputs.map((t) => t.name),
    ...step.outputs.map((t) => t.name),
  ]
    .map((text) => text.slice(0, 500))
    .join("\n")
    .toLowerCase());
}

export class Search {
  readonly input: HTMLInputElement;
  readonly found = h("span", { class: "faint", role: "status" });
  hits: number[] = []; // steps
  private at = -1;
  private readonly view: GraphView;

  constructor(view: GraphView) {
    this.view = view;
    this.input = h("input", {
      type: "search",
      placeholder: "Find node, type or tensor",
      "aria-label": "Find a node, a type of operator or a tensor",
      oninput: () => this.search(),
      onkeydown: (e: KeyboardEvent) => {
        if (e.key !== "Enter") return;
        e.preventDefault();
        this.next(e.shiftKey ? -1 : 1);
      },
    });
  }

  /** Another table is shown. */
  forget(): void {
    this.input.value = "";
    this.hits = [];
    this.at = -1;
    this.found.textContent = "";
  }
  private search(): void {
    const { view } = this;
    const wanted = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.at = -1;
    this.hits = wanted.length
      ? view.table.steps.filter((i) => (view.folded || !view.p.steps[i].folded) && wanted.every((word) => wordsOf(view.p, i).includes(word)))
      : [];
    this.say();
    view.mark();
  }
  private next(step: number): void {
    const n = this.hits.length;
    if (!n) return;
    this.at = this.at < 0 ? (step > 0 ? 0 : n - 1) : (this.at + step + n) % n;
    this.say();
    this.view.reveal(this.hits[this.at]);
  }
  private say(): void {
    const n = this.hits.length;
    this.found.textContent = !this.input.value.trim() ? "" : !n ? "nothing found" : this.at < 0 ? `${n} found, Enter goes to the first` : `${this.at + 1} of ${n}`;
  }
}
