// SPDX-License-Identifier: Apache-2.0
// Pictures and tables as files: SVG with its styles inside, PNG of an SVG or a canvas.
import { button, h } from "./dom";

let model = "";
/** What the names of all saved files begin with: the model's name without folders and without signs that a file name cannot hold. */
export function nameFiles(of: string): void {
  const last = of.split(/[\\/]/).pop() ?? "";
  const name = last.replace(/\.(onnx|pftrace|json)$/i, "").replace(/[^\p{L}\p{N}._+-]+/gu, "-").replace(/^[.-]+|[.-]+$/g, "");
  model = Array.from(name).slice(0, 60).join("");
}

export function save(name: string, data: Blob): void {
  const url = URL.createObjectURL(data);
  const link = h("a", { href: url, download: model ? `${model} ${name}` : name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "paint-order",
];

/** A copy that looks the same outside of this page: what its rules say is written on every element. */
function alone(svg: SVGSVGElement): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value) to[i].setAttribute(name, value);
    }
    to[i].removeAttribute("class");
    to[i].removeAttribute("tabindex");
  });
  const box = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(Math.round(box.width)));
  copy.setAttribute("height", String(Math.round(box.height)));
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${Math.round(box.width)} ${Math.round(box.height)}`);
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(paper);
  return copy;
}

export function svgText(svg: SVGSVGElement): string {
  return new XMLSerializer().serializeToString(alone(svg));
}

async function pngOfSvg(svg: SVGSVGElement): Promise<Blob | null> {
  const box = svg.getBoundingClientRect();
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svgText(svg)], { type: "image/svg+xml" }));
  try {
    await new Promise<void>((resolve, reject) => {
      image.onload = () => resolve();
      image.onerror = () => reject(new Error("the picture cannot be drawn"));
      image.src = url;
    });
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(box.width * 2);
    canvas.height = Math.round(box.height * 2);
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Buttons that save a picture. `svg` makes it when it is wanted: for a canvas, the same drawn as SVG. */
export function pictureButtons(name: string, picture: () => SVGSVGElement | HTMLCanvasElement | null, svg?: () => string): HTMLElement {
  const asSvg = (): void => {
    const p = picture();
    const text = svg ? svg() : p instanceof SVGSVGElement ? svgText(p) : null;
    if (text) save(`${name}.svg`, new Blob([text], { type: "image/svg+xml" }));
  };
  const asPng = async (): Promise<void> => {
    const p = picture();
    if (!p) return;
    const blob =
      p instanceof SVGSVGElement
        ? await pngOfSvg(p)
        : await new Promise<Blob | null>((resolve) => p.toBlob(resolve, "image/png"));
    if (blob) save(`${name}.png`, blob);
  };
  return h(
    "span",
    { class: "buttons" },
    button("SVG", asSvg, { title: `Save ${name} as SVG` }),
    button("PNG", () => void asPng(), { title: `Save ${name} as PNG` }),
  );
}

/** A 2-D drawing surface that writes SVG: the few calls our canvases use, so one function draws both. */
export interface Surface {
  fillStyle: string;
  strokeStyle: string;
  font: string;
  textAlign: "left" | "right" | "center";
  globalAlpha: number;
  lineWidth: number;
  rect(x: number, y: number, w: number, h: number): void; // filled
  frame(x: number, y: number, w: number, h: number): void; // outlined
  line(points: number[]): void; // x, y, x, y …
  text(text: string, x: number, y: number): void; // baseline at y
}

export class CanvasSurface implements Surface {
  private readonly c: CanvasRenderingContext2D;
  constructor(c: CanvasRenderingContext2D) {
    this.c = c;
    c.textBaseline = "alphabetic";
  }
  set fillStyle(v: string) { this.c.fillStyle = v; }
  set strokeStyle(v: string) { this.c.strokeStyle = v; }
  set font(v: string) { this.c.font = v; }
  set textAlign(v: "left" | "right" | "center") { this.c.textAlign = v; }
  set globalAlpha(v: number) { this.c.globalAlpha = v; }
  set lineWidth(v: number) { this.c.lineWidth = v; }
  rect(x: number, y: number, w: number, hgt: number): void { this.c.fillRect(x, y, w, hgt); }
  frame(x: number, y: number, w: number, hgt: number): void { this.c.strokeRect(x, y, w, hgt); }
  line(points: number[]): void {
    this.c.beginPath();
    for (let i = 0; i < points.length; i += 2) {
      if (i) this.c.lineTo(points[i], points[i + 1]);
      else this.c.moveTo(points[i], points[i + 1]);
    }
    this.c.stroke();
  }
  text(text: string, x: number, y: number): void { this.c.fillText(text, x, y); }
}

const escaped = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "").replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

export class SvgSurface implements Surface {
  fillStyle = "#000";
  strokeStyle = "#000";
  font = "12px sans-serif";
  textAlign: "left" | "right" | "center" = "left";
  globalAlpha = 1;
  lineWidth = 1;
  private readonly parts: string[] = [];
  private readonly width: number;
  private readonly height: number;
  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
  }
  private alpha(): string { return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""; }
  rect(x: number, y: number, w: number, hgt: number): void {
    this.parts.push(`<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${w.toFixed(2)}" height="${hgt.toFixed(2)}" fill="${this.fillStyle}"${this.alpha()}/>`);
  }
  frame(x: number, y: number, w: number, hgt: number): void {
    this.parts.push(`<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${w.toFixed(2)}" height="${hgt.toFixed(2)}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${this.alpha()}/>`);
  }
  line(points: number[]): void {
    const pairs: string[] = [];
    for (let i = 0; i < points.length; i += 2) pairs.push(`${points[i].toFixed(2)},${points[i + 1].toFixed(2)}`);
    this.parts.push(`<polyline points="${pairs.join(" ")}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${this.alpha()}/>`);
  }
  text(text: string, x: number, y: number): void {
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
    const [, size, family] = /^(?:\S+ )?([\d.]+px) (.*)$/.exec(this.font) ?? ["", "12px", "sans-serif"];
    this.parts.push(`<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" text-anchor="${anchor}" font-size="${size}" font-family="${escaped(family)}" fill="${this.fillStyle}"${this.alpha()}>${escaped(text)}</text>`);
  }
  done(paper: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"><rect width="100%" height="100%" fill="${paper}"/>${this.parts.join("")}</svg>`;
  }
}
