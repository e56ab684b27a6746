// SPDX-License-Identifier: Apache-2.0
// Draws the lives of a binding's values: from left to right the steps, from top to bottom the bytes that are live at each,
// the arena with every value at its offset, and what lies elsewhere in rows.
import { inkOn, opColor, type Theme } from "../colors";
import * as f from "../format";
import { valueNamesOf } from "../names";
import type { Surface } from "../picture";
import { type Life, type Profile, stepNode } from "../profile";
import { TEXT, widthOf } from "./graph_draw";
import { lastStep, makerOf, type Plan } from "./memory_plan";

export const LEFT = 76;
const RIGHT = 12;
const TOP = 16; // a line of text
const CURVE = 74;
const GAP = 26;
const ARENA = 280;
const OTHERS = 150; // at most
const ROW = 12;

export interface LivesScene {
  p: Profile;
  plan: Plan;
  theme: Theme;
  from: number; // first step in sight
  to: number; // behind the last one
  width: number;
  step: number; // the one whose holders are listed
  touched: ReadonlySet<Life> | null; // lives of the selection; null: nothing is selected
}

export interface Shape {
  curve: number; // tops of the three parts
  arena: number;
  arenaHeight: number;
  others: number;
  row: number; // height of a row
  height: number;
}

export function shapeOf(plan: Plan): Shape {
  const arena = TOP + CURVE + GAP;
  const arenaHeight = plan.arena.length ? ARENA : 0;
  const others = arena + arenaHeight + (arenaHeight ? GAP : 0);
  const row = plan.rowCount ? Math.min(ROW, OTHERS / plan.rowCount) : 0;
  return { curve: TOP, arena, arenaHeight, others, row, height: others + row * plan.rowCount + 22 };
}

export const xOf = (s: LivesScene, step: number): number => LEFT + ((step - s.from) / (s.to - s.from)) * (s.width - LEFT - RIGHT);
export const stepOf = (s: LivesScene, x: number): number =>
  Math.floor(s.from + ((x - LEFT) / (s.width - LEFT - RIGHT)) * (s.to - s.from));

export interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}
/** Where a life is drawn, cut at the edges; null: out of sight. `other`: its position among those outside of the arena. */
export function rectOf(s: LivesScene, shape: Shape, life: Life, other: number): Rect | null {
  const last = lastStep(s.plan, life);
  if (last < s.from || life.first >= s.to) return null;
  const x = Math.max(LEFT, xOf(s, life.first));
  const w = Math.max(1, Math.min(s.width - RIGHT, xOf(s, last + 1)) - x);
  if (other >= 0) return { x, y: shape.others + s.plan.rows[other] * shape.row, w, h: Math.max(1, shape.row - (shape.row > 4 ? 1 : 0)) };
  const scale = shape.arenaHeight / Math.max(1, s.plan.arenaBytes);
  return { x, y: shape.arena + life.offset * scale, w, h: Math.max(1, life.bytes * scale) };
}

export function drawLives(s: Surface, scene: LivesScene): void {
  const shape = shapeOf(scene.plan);
  s.font = TEXT;
  s.lineWidth = 1;
  s.globalAlpha = 1;
  drawCurve(s, scene, shape);
  if (shape.arenaHeight) drawArenaFrame(s, scene, shape);
  scene.plan.arena.forEach((life) => drawLife(s, scene, shape, life, -1));
  scene.plan.others.forEach((life, i) => drawLife(s, scene, shape, life, i));
  s.globalAlpha = 1;
  const { theme, plan } = scene;
  s.fillStyle = theme.faint;
  s.textAlign = "left";
  if (plan.rowCount) s.text("outputs, workspace and what is allocated while running", LEFT, shape.others - 7);
  s.text(`step ${f.count(scene.from)}`, LEFT, shape.height - 5);
  s.textAlign = "right";
  s.text(`step ${f.count(scene.to - 1)}`, scene.width - RIGHT, shape.height - 5);
  drawStep(s, scene, shape);
}

function drawLife(s: Surface, scene: LivesScene, shape: Shape, life: Life, other: number): void {
  const rect = rectOf(scene, shape, life, other);
  if (!rect) return;
  const { p, plan, theme, touched } = scene;
  const maker = p.steps[makerOf(plan, life)];
  const color = maker ? opColor(p, maker.op, theme.dark) : theme.grey;
  const mine = touched?.has(life) ?? false;
  const dim = touched !== null && !mine;
  s.globalAlpha = dim ? 0.35 : 1;
  s.fillStyle = color;
  s.rect(rect.x, rect.y, rect.w, rect.h);
  if (mine || (rect.w > 5 && rect.h > 3)) {
    s.strokeStyle = mine ? theme.ink : theme.paper;
    s.lineWidth = mine ? 2 : 1;
    s.frame(rect.x, rect.y, rect.w, rect.h);
  }
  if (rect.w < 56 || rect.h < 14 || dim) return;
  const lines = lifeLines(p, life.name || (maker ? stepNode(maker) : ""), f.bytes(life.bytes), Math.floor(rect.w / 10) * 10 - 8, rect.h >= 34);
  s.fillStyle = inkOn(color);
  s.textAlign = "left";
  lines.forEach((line, k) => s.text(line, rect.x + 4, rect.y + Math.min(rect.h / 2 + 4, 16) + 14 * k));
}

/** Name and size in one line, or in two where these are higher than wide; else nothing: a part of them would say something else. */
export function lifeLines(p: Profile, name: string, bytes: string, room: number, high: boolean): string[] {
  if (!name || widthOf(bytes) > room) return [];
  const names = valueNamesOf(p);
  const two = high ? names.fit(name, (text) => widthOf(text) <= room, true) : "";
  const one = names.fit(name, (text) => widthOf(`${text} ${bytes}`) <= room, true);
  if (one && one.length >= two.length) return [`${one} ${bytes}`];
  return two ? [two, bytes] : [];
}

function drawArenaFrame(s: Surface, scene: LivesScene, shape: Shape): void {
  const { theme, plan, width } = scene;
  s.fillStyle = theme.panel;
  s.rect(LEFT, shape.arena, width - LEFT - RIGHT, shape.arenaHeight);
  s.fillStyle = theme.faint;
  s.strokeStyle = theme.line;
  s.textAlign = "right";
  for (let k = 0; k <= 4; k++) {
    const y = shape.arena + (k / 4) * shape.arenaHeight;
    s.text(f.bytes((k / 4) * plan.arenaBytes), LEFT - 8, y + 4);
    s.line([LEFT - 4, y, width - RIGHT, y]);
  }
  s.textAlign = "left";
  s.text("arena, by offset", LEFT, shape.arena - 7);
}

/** Planned bytes per step; where steps are narrower than pixels, the most of each pixel. */
function drawCurve(s: Surface, scene: LivesScene, shape: Shape): void {
  const { theme, plan, width, from, to } = scene;
  const most = Math.max(1, plan.live[plan.peak]);
  const floor = shape.curve + CURVE;
  const columns = Math.min(to - from, Math.floor(width - LEFT - RIGHT));
  const line: number[] = [];
  for (let k = 0; k < columns; k++) {
    const a = from + Math.floor((k * (to - from)) / columns);
    const b = from + Math.floor(((k + 1) * (to - from)) / columns);
    let high = 0;
    for (let i = a; i < b; i++) high = Math.max(high, plan.live[i]);
    const y = floor - (high / most) * (CURVE - 4);
    s.fillStyle = theme.dark ? "#1f4265" : "#cfe3f6";
    s.rect(xOf(scene, a), y, xOf(scene, b) - xOf(scene, a) + 0.5, floor - y);
    line.push(xOf(scene, a), y, xOf(scene, b), y);
  }
  s.strokeStyle = theme.accent;
  s.lineWidth = 1.5;
  s.line(line);
  s.lineWidth = 1;
  s.strokeStyle = theme.line;
  s.line([LEFT, floor, width - RIGHT, floor]);
  s.fillStyle = theme.faint;
  s.textAlign = "right";
  s.text(f.bytes(most), LEFT - 8, shape.curve + 8);
  s.text("0", LEFT - 8, floor + 4);
  s.textAlign = "left";
  s.text("live bytes by step, as planned", LEFT, shape.curve - 4);
  if (plan.peak < from || plan.peak >= to) return;
  const x = (xOf(scene, plan.peak) + xOf(scene, plan.peak + 1)) / 2;
  s.fillStyle = theme.bad;
  s.rect(x - 3, shape.curve + 1, 6, 6);
  const left = x > width - 130;
  s.textAlign = left ? "right" : "left";
  s.text(`peak at step ${f.count(plan.peak)}`, x + (left ? -8 : 8), shape.curve + 34);
}

function drawStep(s: Surface, scene: LivesScene, shape: Shape): void {
  const { step, from, to, theme } = scene;
  if (step < from || step >= to) return;
  s.strokeStyle = theme.bad;
  s.lineWidth = 1;
  const x = (xOf(scene, step) + xOf(scene, step + 1)) / 2;
  s.line([x, shape.curve + 8, x, shape.height - 18]);
}

/** The life under a point: the smallest, since a thin one may lie beside a large one. */
export function lifeAt(scene: LivesScene, x: number, y: number): Life | null {
  const shape = shapeOf(scene.plan);
  let best: Life | null = null;
  let size = Infinity;
  const look = (life: Life, other: number): void => {
    const rect = rectOf(scene, shape, life, other);
    if (!rect || x < rect.x - 1 || x > rect.x + rect.w + 1 || y < rect.y - 1 || y > rect.y + rect.h + 1) return;
    if (rect.w * rect.h >= size) return;
    size = rect.w * rect.h;
    best = life;
  };
  scene.plan.arena.forEach((life) => look(life, -1));
  scene.plan.others.forEach((life, i) => look(life, i));
  return best;
}
