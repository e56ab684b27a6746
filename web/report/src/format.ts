// SPDX-License-Identifier: Apache-2.0
// Numbers with units and three significant digits.

/** Three significant digits, no exponent: 0.0123, 1.23, 12.3, 123, 1230. */
export function digits(v: number): string {
  if (!Number.isFinite(v)) return "–";
  const rounded = Number(v.toPrecision(3)); // first, or 9.996 would become 10.00
  return Math.abs(rounded) >= 100 ? grouped(rounded) : rounded === 0 ? "0" : rounded.toFixed(decimals(rounded));
}
/** Behind the point, for three digits. */
const decimals = (v: number): number => Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v)))));

/** 12 345 with thin spaces from five digits on. */
export function grouped(v: number): string {
  const text = String(Math.abs(Math.round(v)));
  const shown = text.length < 5 ? text : text.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return v < 0 ? `−${shown}` : shown;
}

function scaled(v: number, step: number, units: readonly string[]): string {
  let k = 0;
  let left = Math.abs(v);
  // What rounds to the next unit belongs to it: 999.6 µs is 1.00 ms.
  while (k + 1 < units.length && left >= step - (step === 1000 ? 0.5 : 0)) {
    left /= step;
    k++;
  }
  return `${v < 0 ? "−" : ""}${digits(left)}\u202f${units[k]}`;
}

/** Units of time, and from where on each is used: what rounds to the next one belongs to it. */
const TIMES: readonly [unit: string, ns: number, from: number][] = [
  ["h", 3600e9, 5997e9],
  ["min", 60e9, 999.5e9],
  ["s", 1e9, 999.5e6],
  ["ms", 1e6, 999.5e3],
  ["µs", 1e3, 999.5],
  ["ns", 1, 0],
];
const unitOf = (ns: number): (typeof TIMES)[number] => TIMES.find(([, , from]) => Math.abs(ns) >= from) ?? TIMES[TIMES.length - 1];

export function time(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  const [unit, size] = unitOf(ns);
  return `${ns < 0 ? "−" : ""}${digits(Math.abs(ns) / size)}\u202f${unit}`;
}
/** A time on an axis whose marks are `step` apart: three digits, and more where these would not tell one from the next. */
export function mark(ns: number, step: number): string {
  const [unit, size] = unitOf(Math.min(Math.abs(ns), 999e9)); // at most seconds: round ones are no round part of an hour
  const v = Math.abs(ns) / size;
  const exact = (places: number): boolean => Math.abs(Number(v.toFixed(places)) - v) * size <= step / 100;
  let places = 0;
  while (places < 9 && !exact(places)) places++;
  if (!(step > 0) || (v !== 0 && v < 999.5 && places <= decimals(v))) return time(ns);
  return `${ns < 0 ? "−" : ""}${places ? v.toFixed(places) : grouped(v)}\u202f${unit}`;
}
export const bytes = (b: number): string =>
  !Number.isFinite(b) ? "–" : Number.isInteger(b) && Math.abs(b) < 1024 ? `${grouped(b)}\u202fB` : scaled(b, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
export const percent = (share: number): string => {
  if (!Number.isFinite(share)) return "–";
  const v = share * 100;
  if (v !== 0 && Math.abs(v) < 0.01) return v < 0 ? "−0.01\u202f%" : "<\u202f0.01\u202f%";
  return `${digits(v).replace("-", "−")}\u202f%`;
};
/** A change: +12.3 %. */
export const change = (ratio: number): string => {
  if (!Number.isFinite(ratio)) return "–";
  const v = (ratio - 1) * 100;
  if (Math.abs(v) < 0.05) return "0\u202f%";
  return `${v > 0 ? "+" : "−"}${digits(Math.abs(v))}\u202f%`;
};
export const rate = (perSecond: number, unit: string): string =>
  Number.isFinite(perSecond) ? scaled(perSecond, 1000, ["", "k", "M", "G", "T", "P"].map((p) => p + unit)) : "–";
export const flops = (n: number): string => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
export const count = (n: number): string => (Number.isInteger(n) ? grouped(n) : digits(n));
/** GFLOP/s of so many operations in so many ns. */
export const gflops = (flopCount: number, ns: number): string =>
  flopCount > 0 && ns > 0 ? rate((flopCount / ns) * 1e9, "FLOP/s") : "";
export const bandwidth = (byteCount: number, ns: number): string =>
  byteCount > 0 && ns > 0 ? rate((byteCount / ns) * 1e9, "B/s") : "";

/** Shortened in the middle, by characters as people see them. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const all = Array.from(text.slice(0, 4 * most));
  if (text.length <= 4 * most && all.length <= most) return text;
  const tail = Array.from(text.slice(-2 * most)).slice(-Math.floor((most - 1) / 2));
  return `${all.slice(0, most - 1 - tail.length).join("")}…${tail.join("")}`;
}

/** Control characters and marks of direction as symbols: a name cannot change how the page around it reads. */
export function plain(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "␦").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "␣");
}
