// SPDX-License-Identifier: Apache-2.0
// How near each step comes to what the machine can do: its speed over its work per byte, below the roofs that the
// processor's arithmetic and the bandwidths of caches and memory set.
import { type BarRow, barRows, brief, Charts } from "../chart";
import { onTheme, opColor, theme } from "../colors";
import { append, empty, h, perFrame } from "../dom";
import * as f from "../format";
import { opLegend } from "../legend";
import { nodesText } from "../names";
import { pictureButtons } from "../picture";
import type { Profile, Row } from "../profile";
import type { Page } from "../state";
import { type Column, Table } from "../table";
import type { Opened, View } from "../view";
import { directNote, USUAL } from "./operators_columns";
import { drawRoofline, type Point, pointsOf } from "./roofline_chart";

const MOVERS = 12; // steps without arithmetic in the second chart

const known = (p: Profile): boolean => Object.values(p.machine.peak_gops).some((v) => v > 0);
const gain = (row: Row): number => (row.roofline === null ? 0 : row.usual_ns * (1 - row.roofline));

interface Line {
  row: Row;
  index: number;
}

function chosenRows(page: Page): Set<number> {
  const rows = new Set<number>();
  if (page.selection.kind === "node") rows.add(page.selection.index);
  for (const step of page.selection.steps) rows.add(page.profile.steps[step].rows[1]);
  return rows;
}

function stepsTable(page: Page, chosen: () => Set<number>, dark: () => boolean): Table<Line> {
  const p = page.profile;
  const lines = p.rows.node.map((row, index) => ({ row, index })).filter(({ row }) => !row.bracket && row.usual_ns > 0 && (row.flops > 0 || row.bytes > 0));
  const ratio = (a: number, b: number): number | null => (a > 0 && b > 0 ? a / b : null);
  const all: Column<Line>[] = [
    { id: "name", title: "Operator", text: ({ row }) => row.name, color: ({ row }) => opColor(p, row.op, dark()), width: "minmax(8rem, 1fr)" },
    { id: "node", title: "Nodes", name: ({ row }) => nodesText(row.node), text: ({ row }) => row.node, width: "minmax(9rem, 1.4fr)" },
    { id: "time", title: "Time per run", hint: USUAL, unit: "ns", number: true, text: ({ row }) => f.time(row.usual_ns), value: ({ row }) => row.usual_ns, width: "8.6rem" },
    { id: "intensity", title: "FLOP/byte", hint: "Arithmetic operations per byte read or written", number: true, text: ({ row }) => (row.flops > 0 && row.bytes > 0 ? f.digits(row.flops / row.bytes) : ""), value: ({ row }) => ratio(row.flops, row.bytes), width: "6.4rem" },
    { id: "gflops", title: "Speed", unit: "GFLOP/s", number: true, text: ({ row }) => f.gflops(row.flops, row.usual_ns), value: ({ row }) => ratio(row.flops, row.usual_ns), width: "8.4rem" },
    { id: "gbps", title: "Bandwidth", unit: "GB/s", number: true, text: ({ row }) => f.bandwidth(row.bytes, row.usual_ns), value: ({ row }) => ratio(row.bytes, row.usual_ns) },
    { id: "roofline", title: "Of the peak", unit: "0…1", number: true, text: ({ row }) => (row.roofline === null ? "" : f.percent(row.roofline)), value: ({ row }) => row.roofline, bar: ({ row }) => row.roofline ?? 0 },
    { id: "bound", title: "Bound by", text: ({ row }) => row.bound, width: "6.4rem" },
    { id: "gain", title: "To gain", hint: "Time per run that the step would save at its peak", unit: "ns", number: true, text: ({ row }) => (row.roofline === null ? "" : f.time(gain(row))), value: ({ row }) => (row.roofline === null ? null : gain(row)) },
  ];
  const asked = page.params.get("sort") ?? "-gain";
  const columns = all.filter((c) => c.id === "time" || lines.some((line) => c.text(line) !== ""));
  const column = asked.replace(/^-/, "");
  const table = new Table<Line>({
    name: "roofline",
    columns,
    rows: lines,
    sort: columns.some((c) => c.id === column) ? { column, down: asked.startsWith("-") } : { column: "time", down: true },
    words: ({ row }) => `${row.name} ${row.node} ${row.bound} ${row.arithmetic} ${row.kernel}`,
    choose: ({ index }) => page.selectRow("node", index),
    act: () => page.go("timeline"),
    chosen: ({ index }) => chosen().has(index),
    sorted: (id, down) => page.set("sort", `${down ? "-" : ""}${id}`),
    filter: page.params.get("filter") ?? "",
    filtered: (text) => page.set("filter", text || null),
  });
  return table;
}

/** Steps that only move bytes, by their bandwidth; their time decides which are shown. */
function movers(p: Profile): Line[] {
  return p.rows.node
    .map((row, index) => ({ row, index }))
    .filter(({ row }) => !row.bracket && !(row.flops > 0) && row.bytes > 0 && row.usual_ns > 0)
    .sort((a, b) => b.row.usual_ns - a.row.usual_ns)
    .slice(0, MOVERS);
}

function moverRows(page: Page, lines: Line[], chosen: Set<number>, dark: boolean): BarRow[] {
  return lines.map(({ row, index }) => {
    const speed = row.bytes / row.usual_ns;
    const near = row.roofline === null ? "" : `, ${f.percent(row.roofline)} of the peak of ${row.bound}`;
    return {
      key: `mover-${index}`,
      name: `${row.name} ${row.node}`,
      from: 0,
      to: speed,
      text: f.rate(speed * 1e9, "B/s"),
      fill: opColor(page.profile, row.op, dark),
      lines: [brief(`${row.name} ${row.node}`, 120), `${f.rate(speed * 1e9, "B/s")}${near}`, `${f.time(row.usual_ns)} per run, ${f.percent(row.usual_share)}`],
      chosen: chosen.has(index),
      pick: () => page.selectRow("node", index),
    };
  });
}

function open(root: HTMLElement, page: Page): Opened {
  const p = page.profile;
  const points = pointsOf(p);
  const peaks = known(p);
  const moving = movers(p);
  append(root, [h("h2", { class: "visually-hidden" }, "Roofline")]);
  if (!points.length && !moving.length) {
    // Peaks alone would not help, so they are not asked for.
    const calibrate = peaks ? "" : "sonde doctor --calibrate\n";
    root.append(
      p.summary.iterations
        ? empty("No step tells its work", "The steps of this profile carry no counts of operations and bytes. Profiles that sonde records have them:", `${calibrate}sonde profile MODEL -o report.html`)
        : empty("No run was measured", "Speeds need measured runs:", `${calibrate}sonde profile MODEL -n 100 -o report.html`),
    );
    return {};
  }
  if (!peaks) {
    root.append(
      empty(
        "The peaks of this machine are not known",
        points.length
          ? "So there are no roofs in the chart below, only the speeds of the steps. Measure the peaks once, then profile again:"
          : "Measure them once, then profile again:",
        "sonde doctor --calibrate\nsonde profile MODEL -o report.html",
      ),
    );
  }
  let chosen = chosenRows(page);
  const charts = new Charts();
  const pick = (point: Point): void => page.selectRow("node", point.index);
  const scatter = charts.add(
    `Roofline: ${points.length} steps by speed over operations per byte${peaks ? ", below the machine’s peaks" : ""}. The table holds the same figures.`,
    true,
    (svg, width, t) => drawRoofline(svg, width, t, p, points, chosen, pick),
  );
  const fastest = moving.reduce((most, { row }) => Math.max(most, row.bytes / row.usual_ns), p.machine.peak_gbps || 0);
  const bars = charts.add("Bandwidth of steps without arithmetic", true, (svg, width, t) =>
    barRows(svg, width, t, moverRows(page, moving, chosen, t.dark), { low: 0, high: fastest, axis: (v) => f.rate(v * 1e9, "B/s") }),
  );
  let { dark } = theme();
  const table = stepsTable(page, () => chosen, () => dark);
  const card = (title: string, kind: string, tools: Node | null, ...children: (Node | null)[]): HTMLElement =>
    h("section", { class: `card ${kind}`, "aria-label": title }, h("h2", null, title, tools), children);
  const types = new Set(points.map(({ row }) => row.op));
  let legend = opLegend(p, types);
  const note = h("p", { class: "faint" }, "The area of a point is its share of the time. A point on a roof cannot go faster in this form; one far below has time to gain.");
  const direct = directNote(points.map(({ row }) => row));
  root.append(
    h(
      "div",
      { class: "cards" },
      points.length ? card("Speed over work per byte", "wide", pictureButtons("roofline", () => scatter.svg), scatter.element, legend, note, direct ? h("p", { class: "faint" }, direct) : null) : null,
      moving.length ? card("Steps that only move data", "wide", pictureButtons("bandwidth", () => bars.svg), bars.element, h("p", { class: "faint" }, "Those that take most time, with the bytes per second that they read and write.")) : null,
      card("Steps", "wide", null, table.element),
    ),
  );
  const unwatch = onTheme(() => {
    dark = theme().dark;
    table.refresh();
    const before = legend;
    before.replaceWith((legend = opLegend(p, types)));
  });
  return {
    search: table.search,
    // One drawing per frame: the details that open beside the view change its width as well.
    selected: perFrame(() => {
      chosen = chosenRows(page);
      charts.redraw();
      table.reveal();
    }),
    close: () => {
      unwatch();
      charts.close();
    },
  };
}

export const roofline: View = {
  id: "roofline",
  title: "Roofline",
  keys: [["Tab Enter", "go through the points, choose one"]],
  shown: () => true,
  open,
};
