// SPDX-License-Identifier: Apache-2.0
// What the timeline shows at a moment: a window of time, lanes and counter tracks below each other, and where on the
// canvas a time and a span are. Pure arithmetic; the drawing is in timeline_draw.ts.
import { plain } from "../format";
import { HIDDEN, type Lanes } from "../lanes";
import type { Profile } from "../profile";
import type { Track } from "./timeline_counters";
import type { Flow } from "./timeline_flows";

export const MINI = 36; // heights in pixels: the profile as a whole
export const RULER = 24;
export const TOP = MINI + RULER;
export const ROW = 18;
const FLAT = 5; // a row of a collapsed lane
const GAP = 10;
const TRACK = 46;
const LEAST = 20; // ns that a window shows at least

export interface Item {
  kind: "lane" | "track";
  index: number; // of the lane or the track
  title: string;
  id: string; // stays the same over time: remembers what is collapsed
  y: number; // from the top of all items
  height: number;
  row: number; // height of a row
  collapsed: boolean;
}

export function threadTitle(p: Profile, thread: number): string {
  const t = p.threads[thread];
  return plain(t?.name || `thread ${t?.os_tid || thread}`);
}

interface Sizes {
  row: number;
  track: number;
}
/** Lanes and tracks below each other; what they leave of `room` is shared among them, so that few fill the window, too. */
export function layOut(p: Profile, lanes: Lanes, tracks: Track[], collapsed: ReadonlySet<string>, room: number): Item[] {
  const least = { row: ROW, track: TRACK };
  const items = place(p, lanes, tracks, collapsed, least);
  const used = items.length ? items[items.length - 1].y + items[items.length - 1].height + GAP : 0;
  const rows = lanes.threads.reduce((n, lane) => n + (collapsed.has(`t${lane.thread}`) ? 0 : Math.max(1, lane.depth)), 0);
  const high = tracks.reduce((n, track) => n + (collapsed.has(`c${track.name}`) ? 0 : 1), 0);
  const parts = rows + (TRACK / ROW) * high; // a track grows as a row does
  const more = parts > 0 ? Math.max(0, room - used) / parts : 0;
  if (more < 1) return items;
  return place(p, lanes, tracks, collapsed, { row: Math.floor(ROW + more), track: Math.floor(TRACK + (TRACK / ROW) * more) });
}

function place(p: Profile, lanes: Lanes, tracks: Track[], collapsed: ReadonlySet<string>, size: Sizes): Item[] {
  const items: Item[] = [];
  let y = 4;
  const put = (item: Omit<Item, "y">): void => {
    items.push({ ...item, y });
    y += item.height + GAP;
  };
  lanes.threads.forEach((lane, index) => {
    const id = `t${lane.thread}`;
    const flat = collapsed.has(id);
    const row = flat ? FLAT : size.row;
    const height = Math.max(flat ? ROW : row, row * lane.depth);
    put({ kind: "lane", index, title: threadTitle(p, lane.thread), id, height, row, collapsed: flat });
  });
  tracks.forEach((track, index) => {
    const id = `c${track.name}`;
    const flat = collapsed.has(id);
    const height = flat ? ROW : size.track;
    put({ kind: "track", index, title: plain(track.name), id, height, row: height, collapsed: flat });
  });
  return items;
}

export interface Scene {
  p: Profile;
  lanes: Lanes;
  tracks: Track[];
  items: Item[];
  density: Float32Array;
  t0: number;
  t1: number;
  scroll: number;
  width: number;
  height: number;
  gutter: number;
  hits: Uint32Array[][] | null; // rows of what the search found
  marked: Uint32Array[][] | null; // rows of the selected steps
  selected: number; // span; -1: none
  flows: Flow[];
  area: [number, number] | null;
  hover: number; // span under the pointer; -1: none
}

export const plotWidth = (v: Scene): number => Math.max(1, v.width - v.gutter);
export const timeToX = (v: Scene, t: number): number => v.gutter + ((t - v.t0) / (v.t1 - v.t0)) * plotWidth(v);
export const xToTime = (v: Scene, x: number): number => v.t0 + ((x - v.gutter) / plotWidth(v)) * (v.t1 - v.t0);
/** The time a pixel stands for. */
export const pixelTime = (v: Scene): number => (v.t1 - v.t0) / plotWidth(v);
export const miniToTime = (v: Scene, x: number): number => ((x - v.gutter) / plotWidth(v)) * v.p.end;

export function contentHeight(v: Scene): number {
  const last = v.items[v.items.length - 1];
  return last ? last.y + last.height + GAP : 0;
}
export const mostScroll = (v: Scene): number => Math.max(0, contentHeight(v) - (v.height - TOP));

/** A window inside the profile with the wanted length, as near to the wanted place as it can be. */
export function clampWindow(end: number, t0: number, t1: number): [number, number] {
  const all = Math.max(end, LEAST);
  const length = Math.min(all, Math.max(LEAST, t1 - t0));
  const middle = (t0 + t1) / 2;
  const from = Math.min(all - length, Math.max(0, middle - length / 2));
  return [from, from + length];
}

/** Zoomed by a factor (below 1: nearer) with the time at `at` where it is. */
export function zoomWindow(end: number, t0: number, t1: number, factor: number, at: number): [number, number] {
  const length = Math.min(Math.max(end, LEAST), Math.max(LEAST, (t1 - t0) * factor));
  const from = at - ((at - t0) / (t1 - t0)) * length;
  return clampWindow(end, from, from + length);
}

/** "1000-2000" as a window; null: it is none. */
export function readWindow(text: string | undefined): [number, number] | null {
  const parts = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? "");
  if (!parts) return null;
  const from = Number(parts[1]);
  const to = Number(parts[2]);
  return to > from ? [from, to] : null;
}
export const writeWindow = (from: number, to: number): string => `${Math.floor(Math.max(0, from))}-${Math.ceil(to)}`;

/** Top and height of a span's box, without scrolling; null: it is not drawn. */
export function spanBox(v: Scene, i: number): { y: number; height: number } | null {
  const lane = v.lanes.laneOf[v.p.spans.thread[i]];
  const level = v.lanes.level[i];
  const item = lane === undefined || level === HIDDEN ? undefined : v.items[lane];
  return item ? { y: item.y + level * item.row, height: item.row - 1 } : null;
}

/** The lane and row, or the track, at a height of the canvas. */
export function itemAt(v: Scene, y: number): { item: Item; row: number } | null {
  const inside = y - TOP + v.scroll;
  for (const item of v.items) {
    if (inside < item.y || inside >= item.y + item.height) continue;
    return { item, row: item.kind === "lane" ? Math.floor((inside - item.y) / item.row) : 0 };
  }
  return null;
}
