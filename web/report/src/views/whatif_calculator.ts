// SPDX-License-Identifier: Apache-2.0
// Amdahl's law by hand: how many times as fast each type of operator would be, and what becomes of the run. The
// assumptions are in the address: f=0:2,3:inf means row 0 twice as fast, row 3 in no time.
import { brief, type Charts, label } from "../chart";
import { onTheme, opColor, theme } from "../colors";
import { append, button, clear, empty, h } from "../dom";
import * as f from "../format";
import { pictureButtons, save } from "../picture";
import type { Profile, Row } from "../profile";
import type { Page } from "../state";
import { csvField } from "../table";
import { drawShares, type Piece, pieces, total } from "./summary_shares";

const LEAST = 0.005; // of the run: below, nothing can be gained
const PRODUCTS = /conv|gemm|matmul|einsum|attention|lstm|gru|rnn/i;

type Factors = Map<number, number>; // row of rows.op ► times as fast
interface Assumed {
  row: Row;
  index: number;
  product: boolean;
}

/** Types worth an assumption, most time first. */
function assumable(p: Profile): Assumed[] {
  return p.rows.op
    .map((row, index) => ({ row, index, product: PRODUCTS.test(row.op) }))
    .filter(({ row }) => !row.bracket && row.usual_share >= LEAST)
    .sort((a, b) => b.row.usual_ns - a.row.usual_ns);
}

function read(text: string, list: Assumed[]): Factors {
  const factors: Factors = new Map();
  for (const one of text.split(",")) {
    const [index, value] = one.split(":");
    const factor = value === "inf" ? Infinity : Number(value);
    if (factor > 0 && list.some((x) => x.index === Number(index))) factors.set(Number(index), factor);
  }
  return factors;
}
const written = (factors: Factors): string | null =>
  [...factors].filter(([, v]) => v !== 1).map(([k, v]) => `${k}:${v === Infinity ? "inf" : Number(v.toPrecision(4))}`).join(",") || null;

/** The same pieces with other times; what is gathered under "other" is added up anew. */
function changed(p: Profile, list: Piece[], factors: Factors): Piece[] {
  const own = new Set(list.map((x) => x.index));
  let others = 0;
  p.rows.op.forEach((row, i) => {
    if (!own.has(i) && !row.bracket) others += row.usual_ns / (factors.get(i) ?? 1);
  });
  return list.map((x) => ({ ...x, ns: x.index >= 0 ? x.ns / (factors.get(x.index) ?? 1) : others }));
}

export interface Calculator {
  element: HTMLElement;
  selected(): void;
  close(): void;
}

/** One row of the calculator: the type, its time, the assumption, and what it gives. */
class Line {
  readonly element: HTMLElement;
  private readonly number: HTMLInputElement;
  private readonly slider: HTMLInputElement;
  private readonly gone: HTMLButtonElement;
  private readonly then = h("span", { class: "num then" });
  private readonly said = h("span", { class: "note wrong", role: "status" });
  private readonly swatch = h("span", { class: "swatch", "aria-hidden": "true" });
  private readonly name: HTMLButtonElement;

  constructor(readonly of: Assumed, now: number, page: Page, set: (factor: number) => void) {
    const { row, index } = of;
    const who = brief(row.name, 40);
    this.number = h("input", { type: "number", min: 0.1, step: "any", inputmode: "decimal", "aria-label": `${who}: times as fast`, oninput: () => set(Number(this.number.value)) });
    // The slider goes from 1 to 16 times in equal ratios.
    this.slider = h("input", { type: "range", min: 0, max: 4, step: 0.05, "aria-label": `${who}: times as fast, slider`, oninput: () => set(Number((2 ** Number(this.slider.value)).toPrecision(3))) });
    this.gone = button("∞", () => set(this.gone.getAttribute("aria-pressed") === "true" ? 1 : Infinity), { title: "As if it took no time", "aria-label": `${who} takes no time` });
    this.name = button("", () => page.selectRow("op", index), { class: "linklike who", dir: "auto" });
    this.name.append(this.swatch, who);
    this.element = h(
      "div",
      { class: "assume", role: "group", "aria-label": who },
      this.name,
      h("span", { class: "num" }, f.time(row.usual_ns), " ", h("span", { class: "faint" }, f.percent(row.usual_ns / now))),
      h("span", { class: "factor" }, this.slider, this.number, h("span", { "aria-hidden": "true" }, "×"), this.gone),
      this.then,
      h("span", { class: "num faint", title: "Speed-up of the whole run if this took no time" }, `at most ${f.digits(now / Math.max(now - row.usual_ns, now * 1e-9))} ×`),
      this.said,
    );
  }

  show(factor: number, p: Profile, dark: boolean, chosen: boolean): void {
    const gone = factor === Infinity;
    if (document.activeElement !== this.number) this.number.value = gone ? "" : String(Number(factor.toPrecision(3)));
    this.number.placeholder = gone ? "∞" : "";
    this.slider.value = String(gone ? 4 : Math.min(4, Math.max(0, Math.log2(factor))));
    this.slider.setAttribute("aria-valuetext", gone ? "takes no time" : `${f.digits(factor)} times as fast`);
    this.gone.setAttribute("aria-pressed", String(gone));
    // What is typed and cannot be meant is told, not taken for something else in silence.
    const wrong = document.activeElement === this.number && this.number.value !== "" && !(Number(this.number.value) > 0);
    this.number.setAttribute("aria-invalid", String(wrong));
    this.said.textContent = wrong ? "It must be more than 0. Until then it counts as 1: as fast as now." : "";
    this.then.textContent = f.time(this.of.row.usual_ns / factor);
    this.swatch.style.background = opColor(p, this.of.row.op, dark);
    this.element.classList.toggle("chosen", chosen);
  }
}

export function calculator(charts: Charts, page: Page): Calculator {
  const p = page.profile;
  const list = assumable(p);
  const card = h("section", { class: "card wide", "aria-label": "Assumed" });
  if (!p.summary.iterations || !list.length) {
    card.append(empty("Nothing to calculate with", "Assumptions need the measured times of operators:", "sonde profile MODEL -n 100 -o report.html"));
    return { element: card, selected: () => undefined, close: () => undefined };
  }
  let factors = read(page.params.get("f") ?? "", list);
  const before = pieces(p);
  const now = total(before);
  const result = h("div", { class: "stats", role: "status" });
  const chart = charts.add("A run now, and with the assumptions, by operator type", false, (svg, width, t) => {
    const after = changed(p, before, factors);
    const scale = Math.max(now, total(after));
    svg.append(label(0, 12, `now, ${f.time(now)}`), label(0, 84, `then, ${f.time(total(after))}`));
    drawShares(svg, width, t, p, before, 18, scale, null, () => false);
    drawShares(svg, width, t, p, after, 90, scale, null, () => false);
    return 138;
  });
  const lines = list.map((of) => new Line(of, now, page, (factor) => {
    if (factor > 0) factors.set(of.index, factor);
    else factors.delete(of.index);
    update();
  }));
  const update = (): void => {
    page.set("f", written(factors));
    show();
    chart.redraw();
  };
  const show = (): void => {
    const { dark } = theme();
    const chosen = new Set([...page.selection.steps].map((step) => p.steps[step].rows[0]));
    for (const line of lines) line.show(factors.get(line.of.index) ?? 1, p, dark, chosen.has(line.of.index));
    const then = total(changed(p, before, factors));
    clear(result);
    const stat = (name: string, value: string): HTMLElement => h("div", { class: "stat" }, h("b", null, value), h("span", null, name));
    append(result, [stat("run now", f.time(now)), stat("then", f.time(then)), stat("speed-up", then > 0 ? `${f.digits(now / then)} ×` : "∞")]);
  };
  const preset = (title: string, hint: string, wanted: (x: Assumed) => boolean, factor: number): HTMLElement =>
    button(title, () => {
      for (const x of list) if (wanted(x)) factors.set(x.index, factor);
      update();
    }, { title: hint, disabled: !list.some(wanted) });
  const saveCsv = (): void => {
    const rows = lines.map(({ of: { row, index } }) => [row.name, row.usual_ns, factors.get(index) ?? 1, row.usual_ns / (factors.get(index) ?? 1), now / (now - row.usual_ns)]);
    const text = [["Type", "Time now (ns)", "Times as fast", "Time then (ns)", "Speed-up at most"], ...rows].map((r) => r.map(csvField).join(",")).join("\r\n");
    save("assumptions.csv", new Blob([`${text}\r\n`], { type: "text/csv" }));
  };
  append(card, [
    h("h2", null, "Assumed", pictureButtons("assumed", () => chart.svg)),
    h("p", { class: "faint" }, "If these operators were so many times as fast and the rest stayed as it is."),
    h(
      "div",
      { class: "bar presets" },
      preset("int8 ×2", "All products twice as fast", (x) => x.product, 2),
      preset("90 % sparse ×4", "All products four times as fast", (x) => x.product, 4),
      preset("bf16 ×2", "All products twice as fast", (x) => x.product, 2),
      preset("Fused away ∞", "Everything but products takes no time", (x) => !x.product, Infinity),
      button("Reset", () => {
        factors = new Map();
        update();
      }),
      h("span", { class: "space" }),
      button("CSV", saveCsv, { title: "Save the assumptions as CSV" }),
    ),
    result,
    chart.element,
    h("div", { class: "assume head", "aria-hidden": "true" }, h("span", null, "Type"), h("span", { class: "num" }, "Now"), h("span", null, "Times as fast"), h("span", { class: "num" }, "Then"), h("span", { class: "num" }, "Limit of the run")),
    lines.map((line) => line.element),
    h("p", { class: "faint" }, `Types below ${f.percent(LEAST)} of the run are left out: each of them gives at most ${f.digits(1 / (1 - LEAST))} ×.`),
  ]);
  show();
  return { element: card, selected: show, close: onTheme(show) };
}
