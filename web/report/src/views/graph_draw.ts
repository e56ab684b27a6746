// SPDX-License-Identifier: Apache-2.0
// Draws the graph, or the part of it that is in sight, with as much detail as its size on the screen allows. The same
// function draws on the screen and into the saved picture.
import { heat, inkOn, opColor, type Theme } from "../colors";
import * as f from "../format";
import type { Layout } from "../layout";
import { namesOf } from "../names";
import type { Surface } from "../picture";
import type { Profile } from "../profile";
import type { Area } from "./graph_camera";
import { type Box, HEAD, INSIDE, LINE, type Model } from "./graph_model";

export type Mode = "time" | "type" | "roofline";

export interface Scene {
  p: Profile;
  model: Model;
  layout: Layout;
  reach: Float64Array; // per link: x0, y0, x1, y1
  mode: Mode;
  theme: Theme;
  chosen: ReadonlySet<number>; // boxes
  hits: ReadonlySet<number>; // boxes the search found
  cursor: number; // box the keys are at; -1: none
}

const FAMILY = "system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", \"DejaVu Sans\", sans-serif";
const TITLE = `600 13px ${FAMILY}`;
export const TEXT = `12px ${FAMILY}`;
const READABLE = 0.45; // zoom below which there is no text
const CLOSE = 0.7; // zoom from which edges have their shapes
const FRAMED = 0.15; // zoom below which boxes have no outline
const SPECKS = 0.06; // zoom below which arrow heads and short edges are left out

let meter: CanvasRenderingContext2D | null = null;
const fitted = new Map<string, string>();
/** A text of a profile, made plain and as long as fits. */
export function fit(text: string, font: string, room: number): string {
  const key = `${font.length} ${room} ${text.slice(0, 300)}`;
  const there = fitted.get(key);
  if (there !== undefined) return there;
  meter ??= document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
  meter.font = font;
  let shown = f.shorten(f.plain(text), 80);
  for (let n = Array.from(shown).length; n > 2 && meter.measureText(shown).width > room; ) {
    n = Math.max(2, Math.min(n - 1, Math.floor((n * room) / meter.measureText(shown).width) + 1));
    shown = f.shorten(shown, n);
  }
  if (fitted.size > 40_000) fitted.clear();
  fitted.set(key, shown);
  return shown;
}

const shown = new WeakMap<Profile, Map<string, string>>();
/** A name of a node as it fits, so that it is told from others. */
export function fitName(p: Profile, name: string, room: number): string {
  let texts = shown.get(p);
  if (!texts) shown.set(p, (texts = new Map()));
  const key = `${Math.floor(room)} ${name}`;
  let text = texts.get(key);
  if (text === undefined) {
    text = namesOf(p).fit(name, (wording) => widthOf(wording) <= room);
    if (texts.size > 40_000) texts.clear();
    texts.set(key, text);
  }
  return text;
}

export function widthOf(text: string): number {
  meter ??= document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
  meter.font = TEXT;
  return meter.measureText(text).width + 2;
}

export function reachOf(layout: Layout): Float64Array {
  const reach = new Float64Array(4 * layout.bends.length);
  layout.bends.forEach((line, i) => {
    let [x0, y0] = line;
    let [x1, y1] = line;
    for (let k = 2; k < line.length; k += 2) {
      x0 = Math.min(x0, line[k]);
      x1 = Math.max(x1, line[k]);
      y0 = Math.min(y0, line[k + 1]);
      y1 = Math.max(y1, line[k + 1]);
    }
    reach.set([x0, y0, x1, y1], 4 * i);
  });
  return reach;
}

export function boxColor(scene: Scene, box: Box): string {
  const { theme, mode, p, model } = scene;
  if (box.kind === "input" || box.kind === "output") return theme.panel;
  if (mode === "type") return box.op ? opColor(p, box.op, theme.dark) : theme.grey;
  if (mode === "roofline") return box.roofline === null ? theme.panel : heat(box.roofline, theme.dark);
  return heat(model.most > 0 ? box.share / model.most : 0, theme.dark);
}

export function drawGraph(s: Surface, scene: Scene, area: Area, zoom: number): void {
  drawLinks(s, scene, area, zoom);
  const { model, layout, chosen, cursor } = scene;
  let last = -1;
  for (let i = 0; i < model.boxes.length; i++) {
    const box = model.boxes[i];
    const x = layout.x[i] - box.w / 2;
    const y = layout.y[i] - box.h / 2;
    if (x > area.x1 || x + box.w < area.x0 || y > area.y1 || y + box.h < area.y0) continue;
    if (zoom < SPECKS && !chosen.has(i) && i !== cursor) {
      const pixel = Math.floor(y * zoom) * 65536 + Math.floor(x * zoom); // one box of many on a pixel is enough
      if (pixel === last) continue;
      last = pixel;
    }
    drawBox(s, scene, i, x, y, zoom);
  }
  if (zoom >= CLOSE) drawLabels(s, scene, area);
}

function drawLinks(s: Surface, scene: Scene, area: Area, zoom: number): void {
  const { model, layout, reach, theme, chosen, cursor } = scene;
  const marked = (box: number): boolean => chosen.has(box) || box === cursor;
  for (const strong of [false, true]) {
    s.strokeStyle = strong ? theme.accent : theme.dark ? "#6b7783" : "#8c98a4";
    s.lineWidth = (strong ? 2.2 : 1.2) * Math.max(1, 0.6 / zoom);
    for (let i = 0; i < model.links.length; i++) {
      if (reach[4 * i] > area.x1 || reach[4 * i + 2] < area.x0 || reach[4 * i + 1] > area.y1 || reach[4 * i + 3] < area.y0) continue;
      const link = model.links[i];
      if ((marked(link.from) || marked(link.to)) !== strong) continue;
      if (zoom < SPECKS && !strong && (reach[4 * i + 3] - reach[4 * i + 1]) * zoom < 3) continue;
      const line = layout.bends[i];
      s.line(line);
      if (zoom < SPECKS) continue;
      const x = line[line.length - 2];
      const y = line[line.length - 1];
      s.line([x - 4, y - 7, x, y, x + 4, y - 7]);
    }
  }
}

/** Shapes stand where a tensor leaves its box, once however many read it. */
function drawLabels(s: Surface, scene: Scene, area: Area): void {
  const { model, layout, theme } = scene;
  s.font = TEXT;
  s.textAlign = "left";
  for (let i = 0; i < model.boxes.length; i++) {
    const y = layout.y[i] + model.boxes[i].h / 2;
    if (y > area.y1 || y < area.y0 - 40 || layout.x[i] > area.x1 || layout.x[i] + 200 < area.x0) continue;
    const said = new Set<string>();
    for (const k of model.boxOut[i]) {
      const { label } = model.links[k];
      if (!label || said.has(label) || said.size === 2) continue;
      const text = fit(label, TEXT, 170);
      s.fillStyle = theme.paper; // lines may pass behind it
      s.rect(layout.x[i] + 4, y + 3 + 13 * said.size, widthOf(text), 13);
      s.fillStyle = theme.faint;
      s.text(text, layout.x[i] + 5, y + 13 + 13 * said.size);
      said.add(label);
    }
  }
}

function drawBox(s: Surface, scene: Scene, i: number, x: number, y: number, zoom: number): void {
  const { model, theme, chosen, hits, cursor } = scene;
  const box = model.boxes[i];
  const color = boxColor(scene, box);
  const thin = Math.max(1, 0.5 / zoom);
  s.strokeStyle = theme.grey;
  s.lineWidth = thin;
  if (box.kind === "group" && zoom >= 0.2) {
    s.fillStyle = theme.panel; // a second sheet behind it: there is more
    s.rect(x + 5, y + 5, box.w, box.h);
    s.frame(x + 5, y + 5, box.w, box.h);
  }
  s.fillStyle = color;
  s.rect(x, y, box.w, Math.max(box.h, 1 / zoom));
  if (zoom >= FRAMED) s.frame(x, y, box.w, box.h);
  if (zoom >= READABLE) drawText(s, scene, box, x, y, inkOn(color));
  if (hits.has(i)) {
    s.strokeStyle = theme.bad;
    s.lineWidth = 2 * thin;
    s.frame(x - 4, y - 4, box.w + 8, box.h + 8);
  }
  if (chosen.has(i) || cursor === i) {
    s.strokeStyle = theme.accent;
    s.lineWidth = 3 * thin;
    s.frame(x - 1, y - 1, box.w + 2, box.h + 2);
  }
}

/** Time and share, or the time alone: a figure is never cut. */
function figuresOf(box: Box, room: number): string {
  const all = fit(box.figures, TEXT, room);
  return all === box.figures ? all : fit(box.figures.split("  ")[0], TEXT, room);
}

function drawText(s: Surface, scene: Scene, box: Box, x: number, y: number, ink: string): void {
  s.fillStyle = ink;
  if (box.kind === "input" || box.kind === "output") {
    s.font = TEXT;
    s.textAlign = "center";
    s.text(fit(`${box.kind === "input" ? "in" : "out"}: ${box.title}`, TEXT, box.w - 12), x + box.w / 2, y + 17);
    s.textAlign = "left";
    return;
  }
  const room = box.w - 16;
  s.textAlign = "left";
  s.font = TITLE;
  s.text(fit(box.title, TITLE, room), x + 8, y + 19);
  s.font = TEXT;
  s.text(box.kind === "step" ? fitName(scene.p, box.name, room) : fit(box.name, TEXT, room), x + 8, y + 36);
  const badge = box.badge ? fit(box.badge, TEXT, 96) : "";
  s.text(figuresOf(box, badge ? room - widthOf(badge) - 4 : room), x + 8, y + 53);
  if (badge) {
    s.textAlign = "right";
    s.text(badge, x + box.w - 8, y + 53);
    s.textAlign = "left";
  }
  if (!box.inside.length) return;
  const { theme } = scene;
  s.strokeStyle = theme.grey;
  s.lineWidth = 1;
  box.inside.slice(0, INSIDE).forEach((node, k) => {
    const top = y + HEAD + k * LINE;
    s.fillStyle = theme.paper;
    s.rect(x + 6, top, box.w - 12, LINE - 2);
    s.frame(x + 6, top, box.w - 12, LINE - 2);
    s.fillStyle = theme.ink;
    s.text(fit(`${node.op}  ${node.name}`, TEXT, box.w - 22), x + 11, top + 12);
  });
  if (box.inside.length > INSIDE) {
    s.fillStyle = ink;
    s.text(`and ${f.count(box.inside.length - INSIDE)} more`, x + 11, y + HEAD + INSIDE * LINE + 12);
  }
}
