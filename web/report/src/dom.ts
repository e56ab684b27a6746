// SPDX-License-Identifier: Apache-2.0
// Elements from code. Text only ever becomes text nodes and attribute values: nothing in a profile can be markup.

type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

function fill(element: Element, attributes: Attributes | null, children: Child[]): void {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value); // "onclick"
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
}

export function append(to: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(to, child);
    else to.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes | null = null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

export function clear(element: Element): void {
  while (element.lastChild) element.lastChild.remove();
}

/** A canvas as wide as its box, sharp on every screen. Returns the context in CSS pixels. */
export function sharp(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const scale = Math.min(window.devicePixelRatio || 1, 3);
  const w = Math.max(1, Math.round(width * scale));
  const hgt = Math.max(1, Math.round(height * scale));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== hgt) canvas.height = hgt;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/** At most one call per frame, with what was last asked. */
export function perFrame(draw: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

export function button(label: string, press: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: press, ...attributes }, label);
}

/** What is to be seen where there is nothing: why, and what to do. */
export function empty(title: string, advice: string, command?: string): HTMLElement {
  return h(
    "div",
    { class: "empty", role: "note" },
    h("h3", null, title),
    h("p", null, advice),
    command ? h("pre", null, h("code", null, command)) : null,
  );
}

let tip: HTMLElement | null = null;
/** The one tooltip, beside the pointer; lines of text, the first one bold. null hides it. */
export function tooltip(at: { clientX: number; clientY: number } | null, lines: string[] = []): void {
  tip ??= document.body.appendChild(h("div", { class: "tooltip", role: "tooltip" }));
  tip.hidden = !at || !lines.length;
  if (!at || tip.hidden) return;
  clear(tip);
  append(tip, lines.map((line, i) => h("div", { class: i ? "" : "tip-title", dir: "auto" }, line)));
  const box = tip.getBoundingClientRect();
  const x = at.clientX + 14 + box.width > innerWidth ? at.clientX - 14 - box.width : at.clientX + 14;
  const y = at.clientY + 14 + box.height > innerHeight ? at.clientY - 14 - box.height : at.clientY + 14;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}
