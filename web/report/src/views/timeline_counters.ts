// SPDX-License-Identifier: Apache-2.0
// Counters as step charts: per pixel the highest value of its time, so that no peak is lost at any zoom. Maxima of
// blocks keep that fast for millions of values.
import * as f from "../format";
import type { Counters, Profile } from "../profile";

const BLOCK = 64;

export interface Track {
  name: string;
  at: Float64Array;
  value: Float64Array;
  blocks: Float64Array; // the highest value of each BLOCK values
  most: number;
  bytes: boolean;
}

const cache = new WeakMap<Profile, Track[]>();
export function tracksOf(p: Profile): Track[] {
  let made = cache.get(p);
  if (!made) cache.set(p, (made = buildTracks(p.counters, p.strings)));
  return made;
}

export function buildTracks(c: Counters, strings: string[]): Track[] {
  const counts = new Map<number, number>();
  for (let i = 0; i < c.n; i++) counts.set(c.name[i], (counts.get(c.name[i]) ?? 0) + 1);
  return [...counts].map(([name, n]) => {
    const places = new Uint32Array(n);
    let k = 0;
    let sorted = true;
    for (let i = 0; i < c.n; i++) {
      if (c.name[i] !== name) continue;
      if (k && c.at[i] < c.at[places[k - 1]]) sorted = false;
      places[k++] = i;
    }
    if (!sorted) places.sort((a, b) => c.at[a] - c.at[b] || a - b);
    const at = new Float64Array(n);
    const value = new Float64Array(n);
    const blocks = new Float64Array(Math.ceil(n / BLOCK)).fill(-Infinity);
    let most = 0;
    for (let i = 0; i < n; i++) {
      at[i] = c.at[places[i]];
      value[i] = c.value[places[i]];
      if (value[i] > blocks[(i / BLOCK) | 0]) blocks[(i / BLOCK) | 0] = value[i];
      if (value[i] > most) most = value[i];
    }
    const title = strings[name] ?? "";
    return { name: title, at, value, blocks, most, bytes: /\bbytes\b/i.test(title) };
  });
}

/** The first place whose time is behind `t`. */
export function placeBehind(at: Float64Array, t: number): number {
  let low = 0;
  let high = at.length;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (at[mid] <= t) low = mid + 1;
    else high = mid;
  }
  return low;
}

export const valueAt = (track: Track, t: number): number => {
  const k = placeBehind(track.at, t);
  return k ? track.value[k - 1] : 0;
};

/** The highest of the values at places from…to (without `to`). */
export function highest(track: Track, from: number, to: number): number {
  let most = -Infinity;
  let i = from;
  while (i < to) {
    if (i % BLOCK === 0 && i + BLOCK <= to) {
      most = Math.max(most, track.blocks[i / BLOCK]);
      i += BLOCK;
    } else {
      most = Math.max(most, track.value[i]);
      i++;
    }
  }
  return most;
}

/** Calls `bar` with times and the highest value between them, for all of t0…t1; equal neighbours are one. */
export function walkTrack(track: Track, t0: number, t1: number, pixel: number, bar: (from: number, to: number, value: number) => void): void {
  let k = placeBehind(track.at, t0);
  let from = t0;
  let value = k ? track.value[k - 1] : 0;
  let t = t0;
  while (k < track.at.length && track.at[k] < t1) {
    // Up to the next change, in steps of whole pixels: all changes in one pixel are one.
    const begin = Math.max(t, t0 + Math.floor((track.at[k] - t0) / pixel) * pixel);
    const end = begin + pixel;
    let next = k + 1;
    if (next < track.at.length && track.at[next] < end) next = placeBehind(track.at, end);
    const peak = next === k + 1 ? track.value[k] : highest(track, k, next);
    if (peak !== value) {
      bar(from, next === k + 1 ? track.at[k] : begin, value);
      from = next === k + 1 ? track.at[k] : begin;
      value = peak;
    }
    const after = track.value[next - 1];
    if (after !== value) {
      bar(from, end, value);
      from = end;
      value = after;
    }
    t = end;
    k = next;
  }
  if (t1 > from) bar(from, t1, value);
}

export const trackText = (track: Track, value: number): string => (track.bytes ? f.bytes(value) : f.count(value));
