// SPDX-License-Identifier: Apache-2.0
// What part of a drawing is in sight, and the wheel, mouse and fingers that change it.
import { perFrame } from "../dom";

export interface Area {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}
export interface Gestures {
  changed(): void;
  tap(x: number, y: number): void; // in the drawing
  twice(x: number, y: number): void;
  hover(x: number, y: number, event: PointerEvent | null): void; // null: the pointer left
}

const NEAREST = 3;
const FARTHEST = 0.0004;
const TAP = 5; // pixels a finger may move while it taps

export class Camera {
  x = 0; // the drawing's point at the top left
  y = 0;
  zoom = 1; // pixels per unit
  width = 1; // of the canvas
  height = 1;
  private readonly canvas: HTMLCanvasElement;
  private readonly does: Gestures;
  private readonly down = new Map<number, { x: number; y: number }>();
  private moved = 0;

  constructor(canvas: HTMLCanvasElement, does: Gestures) {
    this.canvas = canvas;
    this.does = does;
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.press(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.release(e));
    canvas.addEventListener("pointercancel", (e) => this.down.delete(e.pointerId));
    canvas.addEventListener("pointerleave", () => does.hover(0, 0, null));
    canvas.addEventListener("dblclick", (e) => does.twice(...this.at(e)));
    this.hover = perFrame(() => {
      if (this.over) does.hover(...this.at(this.over), this.over);
    });
  }
  private over: PointerEvent | null = null;
  private readonly hover: () => void;

  private at(e: MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [this.x + (e.clientX - box.left) / this.zoom, this.y + (e.clientY - box.top) / this.zoom];
  }
  area(): Area {
    return { x0: this.x, y0: this.y, x1: this.x + this.width / this.zoom, y1: this.y + this.height / this.zoom };
  }

  pan(dx: number, dy: number): void {
    this.x += dx / this.zoom;
    this.y += dy / this.zoom;
    this.does.changed();
  }
  /** Around a point of the canvas; its middle if none is given. */
  scale(factor: number, px = this.width / 2, py = this.height / 2): void {
    const zoom = Math.min(NEAREST, Math.max(FARTHEST, this.zoom * factor));
    this.x += px / this.zoom - px / zoom;
    this.y += py / this.zoom - py / zoom;
    this.zoom = zoom;
    this.does.changed();
  }
  /** The area as large as it fits, but not larger than life. */
  show(area: Area, closest = 1): void {
    const w = Math.max(1, area.x1 - area.x0);
    const h = Math.max(1, area.y1 - area.y0);
    this.zoom = Math.max(FARTHEST, Math.min(closest, this.width / w, this.height / h));
    this.centre((area.x0 + area.x1) / 2, (area.y0 + area.y1) / 2);
  }
  centre(x: number, y: number): void {
    this.x = x - this.width / 2 / this.zoom;
    this.y = y - this.height / 2 / this.zoom;
    this.does.changed();
  }
  /** As text for the address, and back; false: it was none. What is shown is exactly what the text says. */
  text(): string {
    this.x = Math.round(this.x * 100) / 100;
    this.y = Math.round(this.y * 100) / 100;
    this.zoom = Number(this.zoom.toPrecision(5));
    return `${this.x}_${this.y}_${this.zoom}`;
  }
  read(text: string | undefined): boolean {
    const [x, y, zoom] = (text ?? "").split("_").map(Number);
    if (!(Number.isFinite(x) && Number.isFinite(y) && zoom > 0)) return false;
    this.x = x;
    this.y = y;
    this.zoom = Math.min(NEAREST, Math.max(FARTHEST, zoom));
    return true;
  }

  private wheel(e: WheelEvent): void {
    e.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    const lines = e.deltaMode === 1 ? 16 : 1;
    if (e.shiftKey) return this.pan(e.deltaY * lines + e.deltaX * lines, 0);
    this.scale(Math.exp(-Math.max(-200, Math.min(200, e.deltaY * lines)) * 0.002), e.clientX - box.left, e.clientY - box.top);
  }
  private press(e: PointerEvent): void {
    if (e.button) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(e.pointerId);
    if (!this.down.size) this.moved = 0;
    this.down.set(e.pointerId, { x: e.clientX, y: e.clientY });
  }
  private move(e: PointerEvent): void {
    const from = this.down.get(e.pointerId);
    if (!from) {
      this.over = e;
      this.hover();
      return;
    }
    const dx = e.clientX - from.x;
    const dy = e.clientY - from.y;
    const other = [...this.down].find(([id]) => id !== e.pointerId)?.[1];
    this.down.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.moved += Math.abs(dx) + Math.abs(dy);
    if (other) {
      const box = this.canvas.getBoundingClientRect();
      const was = Math.hypot(from.x - other.x, from.y - other.y);
      const is = Math.hypot(e.clientX - other.x, e.clientY - other.y);
      this.pan(-dx / 2, -dy / 2);
      this.scale(is / Math.max(1, was), (e.clientX + other.x) / 2 - box.left, (e.clientY + other.y) / 2 - box.top);
    } else if (this.moved > TAP) this.pan(-dx, -dy);
  }
  private release(e: PointerEvent): void {
    if (this.down.delete(e.pointerId) && !this.down.size && this.moved <= TAP) this.does.tap(...this.at(e));
  }
}
