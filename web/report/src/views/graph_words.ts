// SPDX-License-Identifier: Apache-2.0
// A box of the graph in words: beside the pointer, and for those who cannot see it.
import * as f from "../format";
import { type Profile, stepNodes } from "../profile";
import type { Box, Model } from "./graph_model";
import { bodiesOf, rowOf, sharersOf } from "./graph_tables";

const MOST = 6; // nodes named beside the pointer

/** What a box is, what it takes, and what it is joined to. */
export function sentence(model: Model, i: number): string {
  const box = model.boxes[i];
  const names = (links: number[], end: "from" | "to"): string =>
    links.slice(0, 4).map((k) => f.shorten(f.plain(model.boxes[model.links[k][end]].title), 30)).join(", ") || "nothing";
  const what = [box.title, box.name].map((text) => f.shorten(f.plain(text), 80)).join(", ");
  return `${what}. ${box.figures} ${box.badge}. From ${names(model.boxIn[i], "from")}; to ${names(model.boxOut[i], "to")}.`;
}

export function tipOf(p: Profile, box: Box | undefined): string[] {
  if (!box) return [];
  const lines = [f.shorten(f.plain(box.title), 80), f.shorten(f.plain(box.name), 120)];
  if (box.figures) lines.push(Number.isNaN(box.time) ? box.figures : `${f.time(box.time)}, ${f.percent(box.share)} of a run`);
  if (box.roofline !== null) lines.push(`${f.percent(box.roofline)} of the roofline`);
  if (box.group) lines.push(`${box.badge}; double click or Enter opens it`);
  const step = p.steps[box.step];
  if (!step) return lines;
  const shared = sharersOf(p, step);
  if (shared > 1) lines.push(`these figures are of ${f.count(shared)} steps together`);
  const nodes = stepNodes(step);
  if (nodes.length > 1) lines.push(...nodes.slice(0, MOST).map((n) => f.shorten(f.plain(`${n.op} ${n.name}`), 80)));
  if (nodes.length > MOST) lines.push(`and ${f.count(nodes.length - MOST)} more nodes`);
  if (!step.control) return lines;
  const row = rowOf(p, step);
  lines.push(`with its bodies, which are bindings of their own${row ? `; ${f.time(row.usual_ns)} without them` : ""}`);
  if (bodiesOf(p, box.step).length) lines.push("double click or Enter opens a body");
  return lines;
}
