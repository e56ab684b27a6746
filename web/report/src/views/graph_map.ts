// SPDX-License-Identifier: Apache-2.0
// The whole graph small in the corner, with the part in sight framed; pressing it goes there. Long chains are squeezed,
// so that they do not become a hair.
import { h, sharp } from "../dom";
import type { Camera } from "./graph_camera";
import { boxColor, type Scene } from "./graph_draw";

const WIDTH = 132;
const HEIGHT = 170;

export class MiniMap {
  readonly canvas: HTMLCanvasElement;
  private readonly camera: Camera;
  private sx = 1;
  private sy = 1;

  constructor(camera: Camera) {
    this.camera = camera;
    this.canvas = h("canvas", { class: "graph-map", "aria-hidden": "true", hidden: true });
    const go = (e: PointerEvent): void => {
      const box = this.canvas.getBoundingClientRect();
      camera.centre((e.clientX - box.left) / this.sx, (e.clientY - box.top) / this.sy);
    };
    this.canvas.addEventListener("pointerdown", (e) => {
      this.canvas.setPointerCapture(e.pointerId);
      go(e);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (this.canvas.hasPointerCapture(e.pointerId)) go(e);
    });
  }

  draw(scene: Scene): void {
    const { layout, model, theme } = scene;
    const area = this.camera.area();
    const whole = area.x0 <= 0 && area.y0 <= 0 && area.x1 >= layout.width && area.y1 >= layout.height;
    this.canvas.hidden = whole;
    if (whole) return;
    const even = Math.min(WIDTH / layout.width, HEIGHT / layout.height);
    const w = Math.max(48, layout.width * even);
    const hgt = Math.max(48, layout.height * even);
    this.sx = w / layout.width;
    this.sy = hgt / layout.height;
    const c = sharp(this.canvas, w, hgt);
    c.fillStyle = theme.panel;
    c.fillRect(0, 0, w, hgt);
    let last = -1;
    model.boxes.forEach((box, i) => {
      const marked = scene.chosen.has(i) || scene.cursor === i;
      const pixel = Math.floor(layout.y[i] * this.sy) * 1024 + Math.floor(layout.x[i] * this.sx);
      if (pixel === last && !marked) return;
      last = pixel;
      c.fillStyle = marked ? theme.accent : box.step >= 0 || box.group ? boxColor(scene, box) : theme.grey;
      const bw = Math.max(marked ? 4 : 1.2, box.w * this.sx);
      const bh = Math.max(marked ? 4 : 1.2, box.h * this.sy * 0.8);
      c.fillRect(layout.x[i] * this.sx - bw / 2, layout.y[i] * this.sy - bh / 2, bw, bh);
    });
    c.strokeStyle = theme.accent;
    c.lineWidth = 1.5;
    const x = Math.max(1, area.x0 * this.sx);
    const y = Math.max(1, area.y0 * this.sy);
    c.strokeRect(x, y, Math.max(3, Math.min(w - 1, area.x1 * this.sx) - x), Math.max(3, Math.min(hgt - 1, area.y1 * this.sy) - y));
  }
}
