// SPDX-License-Identifier: Apache-2.0
// The verdicts of a comparison as words and signs: colour only repeats them.
import { mark, time } from "../format";
import type { Change } from "../profile";

export type Verdict = Change["verdict"];
export const VERDICTS: Record<Verdict, { mark: string; color: string; hint: string; noise: boolean }> = {
  slower: { mark: "▲", color: "bad", hint: "Takes longer, and more than noise explains", noise: false },
  faster: { mark: "▼", color: "good", hint: "Takes less, and more than noise explains", noise: false },
  new: { mark: "+", color: "", hint: "Only in the second profile", noise: false },
  gone: { mark: "−", color: "", hint: "Only in the first profile", noise: false },
  unclear: { mark: "?", color: "", hint: "The runs vary too much to tell", noise: true },
  same: { mark: "=", color: "", hint: "The difference is too small to matter", noise: true },
};

export const verdictText = (verdict: Verdict): string => `${VERDICTS[verdict]?.mark ?? "?"} ${verdict}`;
export const isNoise = (row: Change): boolean => VERDICTS[row.verdict]?.noise ?? true;
/** A difference with its sign: +1.20 ms. */
export const signed = (ns: number): string => (Math.abs(ns) < 0.5 ? time(0) : ns > 0 ? `+${time(ns)}` : time(ns));
/** The same at a mark of an axis. */
export const signedMark = (ns: number, step: number): string => `${ns > 0 ? "+" : ""}${mark(ns, step)}`;
