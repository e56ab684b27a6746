// SPDX-License-Identifier: Apache-2.0
// A whole drawing as a picture of its own, also where only a part of it is in sight.
import { theme } from "../colors";
import { CanvasSurface, pictureButtons, type Surface, SvgSurface } from "../picture";

const LONGEST = 16_000; // pixels; browsers draw nothing on larger canvases
const LARGEST = 60e6;

export interface Drawing {
  width: number;
  height: number;
  draw(s: Surface): void;
}

/** SVG and PNG of what `drawing` makes when a button is pressed; null: nothing to save yet. */
export function drawingButtons(name: string, drawing: () => Drawing | null): HTMLElement {
  return pictureButtons(
    name,
    () => {
      const d = drawing();
      return d && canvasOf(d);
    },
    () => {
      const d = drawing();
      if (!d) return "";
      const s = new SvgSurface(Math.ceil(d.width), Math.ceil(d.height));
      d.draw(s);
      return s.done(theme().paper);
    },
  );
}

function canvasOf(d: Drawing): HTMLCanvasElement {
  const scale = Math.min(2, LONGEST / d.width, LONGEST / d.height, Math.sqrt(LARGEST / (d.width * d.height)));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(d.width * scale));
  canvas.height = Math.max(1, Math.round(d.height * scale));
  const c = canvas.getContext("2d") as CanvasRenderingContext2D;
  c.fillStyle = theme().paper;
  c.fillRect(0, 0, canvas.width, canvas.height);
  c.setTransform(scale, 0, 0, scale, 0, 0);
  d.draw(new CanvasSurface(c));
  return canvas;
}
