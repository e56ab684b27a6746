// SPDX-License-Identifier: Apache-2.0
// Colours of spans and text that fits, for the timeline and the flame graph.
import { categoryColor, opColor, theme, type Theme } from "../colors";
import { plain, shorten } from "../format";
import { Cat, type Profile } from "../profile";

const HUES = 24; // of user scopes

/** A number from a text: the same in every profile. */
export function hashOf(text: string): number {
  let v = 2166136261;
  for (let i = 0; i < text.length && i < 200; i++) v = Math.imul(v ^ text.charCodeAt(i), 16777619);
  v ^= v >>> 15;
  return v >>> 0;
}

/** A hue of HSL as "#rrggbb", the notation inkOn reads; so light that dark text reads well on all of them. */
function hueColor(hue: number): string {
  const light = 0.68;
  const strength = 0.6 * (1 - light);
  const part = (n: number): string => {
    const k = (n + hue / 30) % 12;
    const v = light - strength * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * v).toString(16).padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}

/** A colour as if it lay over another one: boxes that share an edge then show no seam. Both as "#rrggbb" or "#rgb". */
export function over(color: string, paper: string, share: number): string {
  const parts = (c: string): number[] => {
    const long = c.length === 4 ? c.replace(/[0-9a-f]/gi, "$&$&") : c;
    return [1, 3, 5].map((i) => parseInt(long.slice(i, i + 2), 16) || 0);
  };
  const below = parts(paper);
  return `#${parts(color).map((v, i) => Math.round(v * share + below[i] * (1 - share)).toString(16).padStart(2, "0")).join("")}`;
}

/** Colours for names: the first by its hash, each other one as far from those taken as it can be. */
export function scopeColors(names: Iterable<string>): Map<string, string> {
  const taken = new Set<number>();
  const colors = new Map<string, string>();
  for (const name of names) {
    if (colors.has(name)) continue;
    const k = farthest(hashOf(name) % HUES, taken);
    taken.add(k);
    if (taken.size === HUES) taken.clear(); // from here on hues come again
    colors.set(name, hueColor((k * 360) / HUES));
  }
  return colors;
}

/** The hue with the widest way to all that are taken; of equal ones the first from `wanted` on. */
function farthest(wanted: number, taken: ReadonlySet<number>): number {
  let best = wanted;
  let most = -1;
  for (let step = 0; step < HUES; step++) {
    const k = (wanted + step) % HUES;
    let nearest = HUES;
    for (const other of taken) nearest = Math.min(nearest, Math.abs(k - other), HUES - Math.abs(k - other));
    if (nearest > most) {
      best = k;
      most = nearest;
    }
  }
  return best;
}

/** The colours of one profile in the theme of the moment. */
export class Paint {
  readonly theme: Theme;
  private readonly p: Profile;
  private readonly steps: (string | undefined)[] = [];
  private readonly names = new Map<number, string>();
  private readonly categories: string[];

  constructor(p: Profile) {
    this.p = p;
    this.theme = theme();
    this.categories = Array.from({ length: 256 }, (_, k) => categoryColor(k, this.theme.dark));
    const scopes = new Set<number>();
    for (let i = 0; i < p.spans.n; i++) if (p.spans.category[i] === Cat.User) scopes.add(p.spans.name[i]);
    const colors = scopeColors([...scopes].map((id) => p.strings[id] ?? ""));
    for (const id of scopes) this.names.set(id, colors.get(p.strings[id] ?? "") as string);
  }

  step(index: number): string {
    return (this.steps[index] ??= opColor(this.p, this.p.steps[index]?.op ?? "", this.theme.dark));
  }
  scope(name: number): string {
    return this.names.get(name) ?? this.categories[Cat.User];
  }
  category(cat: number): string {
    return this.categories[cat];
  }
  span(i: number): string {
    const s = this.p.spans;
    const cat = s.category[i];
    if (s.step[i] >= 0 && (cat === Cat.Operator || cat === Cat.Device)) return this.step(s.step[i]);
    return cat === Cat.User ? this.scope(s.name[i]) : this.categories[cat];
  }
}

// ---- text

export const FONT = '12px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const CACHED = 20_000;
let measure: CanvasRenderingContext2D | null = null;
const widths = new Map<string, number>();

export function textWidth(text: string): number {
  let w = widths.get(text);
  if (w === undefined) {
    measure ??= document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
    measure.font = FONT;
    w = measure.measureText(text).width;
    if (widths.size > CACHED) widths.clear();
    widths.set(text, w);
  }
  return w;
}

const FEWEST = 6; // letters of a shortened name that still say something
/** A name as it fits into so many pixels; "" when nothing readable does. */
export function fitText(text: string, room: number): string {
  let most = Math.floor(room / 4); // no letter of interest is narrower
  let shown = plain(shorten(text, Math.max(3, Math.min(most, 200))));
  while (textWidth(shown) > room) {
    const n = Array.from(shown).length; // characters, as shorten counts them
    most = Math.min(n - 1, Math.floor((n * room) / textWidth(shown)));
    if (most < FEWEST) return "";
    shown = plain(shorten(text, most));
  }
  return most < 3 ? "" : shown;
}

/** The first of several wordings that fits; else the last one shortened. Figures are not cut while a shorter wording is there. */
export function fitting(room: number, ...wordings: string[]): string {
  return wordings.find((text) => textWidth(text) <= room) ?? fitText(wordings[wordings.length - 1], room);
}
