// SPDX-License-Identifier: Apache-2.0
// The flame graph's picture: frames as boxes, the root on top. Frames too narrow to be seen are one grey box, so the
// widths of a row still add up.
import { inkOn } from "../colors";
import * as f from "../format";
import { tidy } from "../names";
import type { Surface } from "../picture";
import { Cat } from "../profile";
import { fitText, FONT, type Paint, textWidth } from "./timeline_paint";
import { childrenOf, KIND_GAP, KIND_ROOT, KIND_TYPE, pathOf, type Tree } from "./timeline_tree";

export const ROW = 22; // pixels
const NARROW = 1; // pixels a frame needs to be drawn by itself
const DEEPEST = 300; // rows: a canvas can be no higher

export interface Box {
  frame: number; // -1: several narrow ones
  x: number;
  w: number;
  row: number;
  count: number; // of the narrow ones
}

/** Boxes of what is to be seen: the frames around `root` over the whole width, and all inside it. */
export function layOut(tree: Tree, root: number, width: number, heavy: boolean): Box[] {
  const path = pathOf(tree, root);
  const boxes: Box[] = path.map((frame, row) => ({ frame, x: 0, w: width, row, count: 1 }));
  const scale = tree.width[root] > 0 ? width / tree.width[root] : 0;
  for (let k = path.length - 1; k < boxes.length; k++) {
    const { frame, row } = boxes[k];
    if (frame < 0 || row + 1 >= DEEPEST) continue;
    let { x } = boxes[k];
    let narrow: Box | null = null;
    for (const child of childrenOf(tree, frame, heavy)) {
      const w = tree.width[child] * scale;
      if (w >= NARROW) {
        narrow = null;
        boxes.push({ frame: child, x, w, row: row + 1, count: 1 });
      } else if (narrow) {
        narrow.w += w;
        narrow.count++;
      } else {
        narrow = { frame: -1, x, w, row: row + 1, count: 1 };
        boxes.push(narrow);
      }
      x += w;
    }
  }
  return boxes.filter((b) => b.frame >= 0 || b.w >= 0.5);
}

export function boxAt(boxes: Box[], x: number, y: number): Box | null {
  const row = Math.floor(y / ROW);
  return boxes.find((b) => b.row === row && x >= b.x && x < b.x + b.w) ?? null;
}

export function frameColor(tree: Tree, k: number, paint: Paint): string {
  const kind = tree.kind[k];
  if (kind === KIND_ROOT) return paint.theme.line;
  if (kind === KIND_GAP) return paint.theme.grey;
  if (tree.step[k] >= 0 && (kind === KIND_TYPE || kind === Cat.Operator || kind === Cat.Device)) return paint.step(tree.step[k]);
  return kind === Cat.User ? paint.scope(tree.name[k]) : paint.category(kind);
}

export interface Look {
  tree: Tree;
  boxes: Box[];
  root: number;
  width: number;
  height: number;
  cursor: number; // frame
  hover: number;
  steps: ReadonlySet<number>; // selected
  hit: Uint8Array | null; // per name: what the search found
}

export function draw(g: Surface, v: Look, paint: Paint): void {
  const { theme } = paint;
  g.font = FONT;
  g.textAlign = "left";
  g.globalAlpha = 1;
  g.fillStyle = theme.paper;
  g.rect(0, 0, v.width, v.height);
  const above = pathOf(v.tree, v.root).length - 1;
  for (const box of v.boxes) drawBox(g, v, paint, box, box.row < above);
  for (const box of v.boxes) if (box.frame >= 0) drawMarks(g, v, paint, box);
}

function drawBox(g: Surface, v: Look, paint: Paint, box: Box, above: boolean): void {
  const { theme } = paint;
  const { tree } = v;
  const y = box.row * ROW;
  const found = box.frame >= 0 && v.hit !== null && v.hit[tree.name[box.frame]] === 1;
  const alpha = v.hit && !found ? 0.25 : above ? 0.5 : 1;
  const color = box.frame < 0 ? theme.grey : frameColor(tree, box.frame, paint);
  g.globalAlpha = alpha;
  g.fillStyle = color;
  const w = box.w - (box.w > 3 ? 1 : 0);
  g.rect(box.x, y, w, ROW - 1);
  g.globalAlpha = 1;
  if (box.frame < 0 || box.w < 24) return;
  g.fillStyle = alpha < 1 ? theme.ink : inkOn(color);
  const name = fitText(tidy(tree.names[tree.name[box.frame]] || "(unnamed)"), w - 10);
  if (!name) return;
  const time = `${f.time(tree.total[box.frame] / tree.runs)}, ${f.percent(tree.total[box.frame] / tree.total[0])}`;
  g.text(textWidth(name) + textWidth(time) + 22 <= w ? `${name}   ${time}` : name, box.x + 5, y + 15);
}

/** Selected frames have a line below, the cursor and the one under the pointer a frame. */
function drawMarks(g: Surface, v: Look, paint: Paint, box: Box): void {
  const y = box.row * ROW;
  const kind = v.tree.kind[box.frame];
  if (kind !== KIND_TYPE && v.steps.has(v.tree.step[box.frame])) {
    g.fillStyle = paint.theme.ink;
    g.rect(box.x, y + ROW - 4, Math.max(1, box.w - 1), 3);
  }
  if (box.frame !== v.cursor && box.frame !== v.hover) return;
  g.strokeStyle = paint.theme.ink;
  g.lineWidth = box.frame === v.cursor ? 2 : 1;
  g.frame(box.x + 1, y + 1, Math.max(1, box.w - 3), ROW - 3);
}
