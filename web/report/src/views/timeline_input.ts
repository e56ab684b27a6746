// SPDX-License-Identifier: Apache-2.0
// Pointers and wheel of the timeline, told as what they mean: pan, zoom, a stretch of time, a click. One pointer
// drags, two pinch; Ctrl+wheel zooms (a pinch on a touchpad is the same), Shift+wheel pans, the plain wheel scrolls.

export interface Gestures {
  pan(dx: number, dy: number): void; // pixels
  zoom(factor: number, x: number): void; // below 1: nearer
  inMini(x: number, y: number): boolean;
  mini(x: number, begin: boolean): void; // a drag in the minimap
  area(from: number, to: number, done: boolean): void; // x of both ends
  click(x: number, y: number): void;
  double(x: number, y: number): void;
  hover(x: number, y: number, at: PointerEvent | null): void;
}

const CLICK = 4; // pixels a click may move

type Mode = "none" | "press" | "pan" | "area" | "mini" | "pinch";

/** Listens until what it returns is called. */
export function listen(stage: HTMLElement, canvas: HTMLCanvasElement, to: Gestures): () => void {
  const down = new Map<number, { x: number; y: number }>();
  let mode: Mode = "none";
  let begin = { x: 0, y: 0 };
  let last = { x: 0, y: 0 };
  let span = 0; // between two fingers
  const stop = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(element: HTMLElement, name: K, act: (e: HTMLElementEventMap[K]) => void): void =>
    element.addEventListener(name, act, { signal: stop.signal, passive: false });
  const place = (e: MouseEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  };
  const pinch = (): { x: number; distance: number } => {
    const [a, b] = [...down.values()];
    return { x: (a.x + b.x) / 2, distance: Math.max(10, Math.hypot(a.x - b.x, a.y - b.y)) };
  };

  on(canvas, "pointerdown", (e) => {
    if (e.button > 0) return;
    const at = place(e);
    down.set(e.pointerId, at);
    canvas.setPointerCapture(e.pointerId);
    canvas.focus({ preventScroll: true });
    begin = last = at;
    if (down.size === 2) {
      mode = "pinch";
      last = { x: pinch().x, y: 0 };
      span = pinch().distance;
    } else if (down.size === 1) {
      mode = to.inMini(at.x, at.y) ? "mini" : e.shiftKey ? "area" : "press";
      if (mode === "mini") to.mini(at.x, true);
    }
    to.hover(0, 0, null);
  });

  on(canvas, "pointermove", (e) => {
    const at = place(e);
    if (!down.has(e.pointerId)) {
      if (e.pointerType !== "touch") to.hover(at.x, at.y, e);
      return;
    }
    down.set(e.pointerId, at);
    if (mode === "pinch" && down.size >= 2) {
      const now = pinch();
      to.zoom(span / now.distance, now.x);
      to.pan(now.x - last.x, 0);
      last = { x: now.x, y: 0 };
      span = now.distance;
      return;
    }
    if (mode === "press" && Math.hypot(at.x - begin.x, at.y - begin.y) > CLICK) mode = "pan";
    if (mode === "pan") to.pan(at.x - last.x, at.y - last.y);
    else if (mode === "area") to.area(begin.x, at.x, false);
    else if (mode === "mini") to.mini(at.x, false);
    last = at;
  });

  const up = (e: PointerEvent): void => {
    if (!down.delete(e.pointerId)) return;
    const at = place(e);
    if (e.type === "pointerup") {
      if (mode === "press") to.click(at.x, at.y);
      else if (mode === "area") to.area(begin.x, at.x, true);
    }
    // The finger that stays after a pinch pans on.
    mode = mode === "pinch" && down.size === 1 ? "pan" : down.size ? mode : "none";
    last = [...down.values()][0] ?? last;
  };
  on(canvas, "pointerup", up);
  on(canvas, "pointercancel", up);
  on(canvas, "pointerleave", () => to.hover(0, 0, null));
  on(canvas, "dblclick", (e) => to.double(place(e).x, place(e).y));

  on(stage, "wheel", (e) => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    const dx = e.deltaX * unit;
    const dy = e.deltaY * unit;
    to.hover(0, 0, null);
    const speed = Math.abs(dy) < 40 ? 0.012 : 0.004; // a pinch on a touchpad comes in small numbers
    if (e.ctrlKey || e.metaKey) to.zoom(Math.exp(Math.max(-1, Math.min(1, dy * speed))), place(e).x);
    else if (e.shiftKey) to.pan(-(dx || dy), 0);
    else to.pan(-dx, -dy);
  });
  return () => stop.abort();
}
