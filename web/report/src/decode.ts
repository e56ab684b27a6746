// SPDX-License-Identifier: Apache-2.0
// From the bytes in the page to a profile: base64, gzip, one line of JSON, then columns (docs/profile-format.md).
import { Cat, SCHEMA, type Header, type Profile } from "./profile";

/** The bytes behind base64. In pieces: one string of 100 MB and its copies would not fit into a small machine. */
export function bytesOf(base64: string): Uint8Array {
  const text = base64.trim();
  const modern = Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array };
  if (modern.fromBase64) return modern.fromBase64(text);
  const piece = 1 << 20; // a multiple of 4
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let at = 0;
  for (let i = 0; i < text.length; i += piece) {
    const part = atob(text.slice(i, i + piece));
    for (let k = 0; k < part.length; k++) bytes[at++] = part.charCodeAt(k);
  }
  return bytes;
}

export async function inflate(pressed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([pressed as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  const parts: Uint8Array[] = [];
  let n = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value as Uint8Array);
    n += (value as Uint8Array).length;
  }
  const whole = new Uint8Array(n);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Reads columns one behind the other. Numbers are unsigned LEB128; above 2^53 they lose their last digits. */
class Columns {
  private at: number;
  private readonly bytes: Uint8Array;
  private readonly view: DataView;
  constructor(bytes: Uint8Array, at: number) {
    this.bytes = bytes;
    this.at = at;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  private ended(): never {
    throw new Error("the profile in this page ends too early");
  }
  /** Calls `to` with every number: the loop of all integer columns. */
  numbers<T extends { [i: number]: number }>(to: T, n: number, change: (v: number, i: number) => number): T {
    const b = this.bytes;
    const end = b.length;
    let at = this.at;
    for (let i = 0; i < n; i++) {
      if (at >= end) this.ended();
      let byte = b[at++];
      let v = byte & 127;
      let scale = 128;
      while (byte > 127) {
        if (at >= end) this.ended();
        byte = b[at++];
        v += (byte & 127) * scale;
        scale *= 128;
      }
      to[i] = change(v, i);
    }
    this.at = at;
    return to;
  }
  doubles(n: number): Float64Array {
    if (this.at + 8 * n > this.bytes.length) this.ended();
    const to = new Float64Array(n);
    for (let i = 0; i < n; i++) to[i] = this.view.getFloat64(this.at + 8 * i, true);
    this.at += 8 * n;
    return to;
  }
}

const same = (v: number): number => v;
const lessOne = (v: number): number => v - 1;
function sums(): (v: number) => number {
  let sum = 0;
  return (v) => (sum += v);
}

/** Spans of allocations have the name of their row in the tables. */
function nameMemory({ strings }: Header, name: Uint32Array, category: Uint8Array): void {
  const from = strings.indexOf("memory");
  if (from < 0) return;
  const to = strings.push("[Mem alloc/free]") - 1;
  for (let i = 0; i < name.length; i++) if (name[i] === from && category[i] === Cat.Memory) name[i] = to;
}

export function decode(bytes: Uint8Array): Profile {
  const line = bytes.indexOf(10);
  if (line < 0) throw new Error("this page holds no profile");
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(0, line))) as Header | null;
  if (!header?.counts) throw new Error("what stands in this page is not a profile");
  if (header.schema !== SCHEMA) throw new Error(`this page reads ${SCHEMA}, not ${String(header.schema)}`);
  const { spans: n, counters: m, runs: r } = header.counts;
  const c = new Columns(bytes, line + 1);
  const spans = {
    n,
    start: c.numbers(new Float64Array(n), n, sums()),
    duration: c.numbers(new Float64Array(n), n, same),
    category: c.numbers(new Uint8Array(n), n, same),
    thread: c.numbers(new Uint32Array(n), n, same),
    step: c.numbers(new Int32Array(n), n, lessOne),
    run: c.numbers(new Uint32Array(n), n, same),
    iteration: c.numbers(new Uint32Array(n), n, same),
    instance: c.numbers(new Uint32Array(n), n, same),
    flags: c.numbers(new Uint8Array(n), n, same),
    name: c.numbers(new Uint32Array(n), n, same),
    text: c.numbers(new Uint32Array(n), n, same),
    label: c.numbers(new Uint32Array(n), n, same),
    parent: c.numbers(new Int32Array(n), n, (v, i) => (v ? i - v : -1)),
  };
  const counters = {
    n: m,
    at: c.numbers(new Float64Array(m), m, same),
    name: c.numbers(new Uint32Array(m), m, same),
    step: c.numbers(new Int32Array(m), m, lessOne),
    value: c.doubles(m),
  };
  const runs = {
    n: r,
    span: c.numbers(new Uint32Array(r), r, same),
    wall: c.doubles(r),
  };
  nameMemory(header, spans.name, spans.category);
  let end = 0;
  for (let i = 0; i < n; i++) end = Math.max(end, spans.start[i] + spans.duration[i]);
  for (let i = 0; i < m; i++) end = Math.max(end, counters.at[i]);
  return { ...header, title: header.model, spans, counters, runs, end };
}
