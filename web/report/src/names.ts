// SPDX-License-Identifier: Apache-2.0
// Names of nodes where there is little room. They are paths whose parts repeat each other
// ("/features/features.2/features.2.0/conv"), and hundreds of them begin and end alike: what is shown of one has to tell
// it from the others, so it keeps its end, and which end is long enough is asked of all of them.
import { h } from "./dom";
import { plain, shorten } from "./format";
import { type Profile, stepNode } from "./profile";

/** Without the parts that the next one repeats: "/features.2.0/conv". */
export function tidy(name: string): string {
  const parts = name.split("/");
  return parts.filter((part, i) => !(part && i + 1 < parts.length && parts[i + 1].startsWith(`${part}.`))).join("/");
}

const LINE = 34; // characters of a line in a card
const END = 24; // of them that stay where a line is narrower
const FEWEST = 6; // letters of a shortened name that still say something
const MOST_NAMES = 20_000; // of more, what tells them apart is not looked for

export class Names {
  private readonly given = new Map<string, string>(); // by wording: the name it was given to
  private readonly ends = new Map<string, number>(); // how many names have this end; and, with a gap, this part and end

  constructor(all: Iterable<string>) {
    const distinct = [...new Set(all)].slice(0, MOST_NAMES);
    for (const name of distinct) for (const key of new Set(keysOf(tidy(name.slice(0, 600))))) this.ends.set(key, (this.ends.get(key) ?? 0) + 1);
  }

  /** The wordings of a name, the fullest first; the first that goes is the one to show. `whole`: of whole parts only. */
  *wordings(name: string, whole: boolean): Generator<string> {
    const short = tidy(name.slice(0, 600));
    if (name.length <= 600) {
      yield name;
      if (short !== name) yield short;
    }
    const keys = keysOf(short).filter((key) => key !== short);
    for (const key of keys) if (this.ends.get(key) === 1) yield `…${key}`;
    if (whole) return yield* keys.filter((key) => !key.includes("…")).map((key) => `…${key}`);
    for (let n = Math.min(short.length - 1, 60); n >= FEWEST; n--) for (const share of [0.5, 0.75, 0.25]) yield cut(short, n, share);
  }
  /** The fullest wording that fits and stands for no other name; if there is none, the fullest that fits; "": none does. */
  fit(name: string, fits: (text: string) => boolean, whole = false): string {
    let first = "";
    for (const text of this.wordings(plain(name), whole)) {
      if (!fits(text)) continue;
      first ||= text;
      const other = this.given.get(text);
      if (other !== undefined && other !== name) continue;
      if (this.given.size > 4 * MOST_NAMES) this.given.clear();
      this.given.set(text, name);
      return text;
    }
    return first;
  }
}

/** Without its middle: so many characters, that share of them from the beginning. */
function cut(text: string, n: number, share: number): string {
  const all = Array.from(text);
  const head = Math.round((n - 1) * share);
  return `${all.slice(0, head).join("")}…${all.slice(all.length - (n - 1 - head)).join("")}`;
}

/** Ends of a path, the longest first, then each part with the last one: "layer.3/…/MatMul". */
function keysOf(name: string): string[] {
  const parts = name.split("/").filter(Boolean).slice(-12);
  const ends = parts.slice(1).map((_, i) => `/${parts.slice(i + 1).join("/")}`);
  const last = parts[parts.length - 1] ?? "";
  const pairs = parts.slice(0, -2).map((part) => `/${part}/…/${last}`);
  return [...ends, ...pairs.reverse()];
}

const made = new WeakMap<Profile, Names>();
/** Of the steps of a profile. */
export function namesOf(p: Profile): Names {
  let names = made.get(p);
  if (!names) made.set(p, (names = new Names(p.steps.slice(0, MOST_NAMES).map(stepNode))));
  return names;
}

const values = new WeakMap<Profile, Names>();
/** Of the values in memory. */
export function valueNamesOf(p: Profile): Names {
  let names = values.get(p);
  if (!names) values.set(p, (names = new Names(p.lives.slice(0, MOST_NAMES).map((l) => l.name))));
  return names;
}

/** What all of several paths begin with, up to a "/": worth saying once; "": too little. */
export function stem(names: readonly string[]): string {
  if (new Set(names).size < 2) return "";
  let common = names[0];
  for (const name of names) {
    let n = 0;
    while (n < common.length && n < name.length && common[n] === name[n]) n++;
    common = common.slice(0, n);
  }
  const end = common.lastIndexOf("/");
  return end >= 5 ? common.slice(0, end + 1) : "";
}

/** Names for the lines of a list, and what they all begin with. */
export function forList(all: readonly string[]): { common: string; names: string[] } {
  const short = all.map(tidy);
  const common = stem(short);
  const rest = short.map((name) => name.slice(common.length));
  const names = new Names(rest);
  return { common, names: rest.map((name) => names.fit(name, (text) => text.length <= LINE) || name) };
}

/** The first of the nodes behind a step, and how many there are. */
export function nodesText(list: string): string {
  const [first, ...more] = list.split(", ");
  return more.length ? `${tidy(first)} and ${more.length} more` : tidy(first);
}

/** A name as an element that loses its beginning, not its end, where it is too narrow. */
export function endKept(name: string): HTMLElement {
  const text = plain(shorten(name, 400));
  const from = Math.max(text.lastIndexOf("/", text.lastIndexOf("/") - 1), text.length - END, 0);
  const parts = from > 0 ? [h("span", { class: "begin" }, text.slice(0, from)), h("span", { class: "end" }, text.slice(from))] : [h("span", { class: "begin" }, text)];
  return h("span", { class: "kept", dir: "ltr" }, parts);
}
