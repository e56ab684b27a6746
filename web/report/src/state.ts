// SPDX-License-Identifier: Apache-2.0
// What the page shows: a view, its own parameters, and the selection that all views share. All of it is in the
// address behind "#", so a copied address opens the same picture:  #timeline?node=12&t=1000-2000
import { ROW_KEYS, type PageData, type Profile, type RowKey, spanName, stepNode, stepTitle } from "./profile";

/** What is selected: steps of the profile that is shown, and perhaps one span of them. */
export interface Selection {
  kind: "none" | RowKey | "step" | "span";
  index: number; // of the row, step or span
  steps: ReadonlySet<number>;
  span: number; // -1: none
  title: string;
}
const nothing: Selection = { kind: "none", index: -1, steps: new Set(), span: -1, title: "" };

export class Page {
  readonly data: PageData;
  shown = 0; // which of the profiles
  view = "summary";
  params = new Map<string, string>(); // of the view
  selection: Selection = nothing;
  private listeners = new Set<(why: "view" | "selection" | "params") => void>();
  private writing = false;

  constructor(data: PageData) {
    this.data = data;
    if (data.profiles.length > 1) this.shown = 1; // what is now, not what was
    addEventListener("hashchange", () => {
      if (!this.writing) this.read();
    });
  }

  get profile(): Profile {
    return this.data.profiles[this.shown];
  }

  on(listener: (why: "view" | "selection" | "params") => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  private tell(why: "view" | "selection" | "params"): void {
    for (const listener of [...this.listeners]) listener(why);
  }

  // ---- selection: told to the open view, unless another view is about to open
  private quiet = false;
  clear(): void {
    this.put(nothing);
  }
  /** Every step of a row of one of the four tables. */
  selectRow(key: RowKey, index: number): void {
    const row = this.profile.rows[key][index];
    if (!row) return this.clear();
    const k = ROW_KEYS.indexOf(key);
    const steps = new Set<number>();
    this.profile.steps.forEach((step, i) => {
      if (step.rows[k] === index) steps.add(i);
    });
    this.put({ kind: key, index, steps, span: -1, title: row.name });
  }
  selectStep(index: number): void {
    const step = this.profile.steps[index];
    if (!step) return this.clear();
    this.put({ kind: "step", index, steps: new Set([index]), span: -1, title: `${stepTitle(step)} ${stepNode(step)}` });
  }
  selectSpan(index: number): void {
    const p = this.profile;
    if (!(index >= 0 && index < p.spans.n)) return this.clear();
    const step = p.spans.step[index];
    this.put({
      kind: "span",
      index,
      steps: new Set(step >= 0 ? [step] : []),
      span: index,
      title: spanName(p, index),
    });
  }
  private put(selection: Selection): void {
    if (selection.kind === this.selection.kind && selection.index === this.selection.index) return;
    this.selection = selection;
    if (this.quiet) return;
    this.write();
    this.tell("selection");
  }

  // ---- views
  go(view: string, params: Record<string, string> = {}): void {
    this.view = view;
    this.params = new Map(Object.entries(params));
    this.write(true);
    this.tell("view");
  }
  /** A parameter of the view, such as the window of time; null takes it away. Does not make a step of the history. */
  set(key: string, value: string | null): void {
    if (value === null) this.params.delete(key);
    else this.params.set(key, value);
    this.write();
  }
  show(profile: number): void {
    if (profile === this.shown || !this.data.profiles[profile]) return;
    this.shown = profile;
    this.selection = nothing;
    this.write();
    this.tell("view");
  }

  /** Another profile in place of the one shown: a run that goes on. Rows may have moved, so steps are kept. */
  replace(data: PageData): void {
    const { kind, index } = this.selection;
    this.data.profiles.splice(0, this.data.profiles.length, ...data.profiles);
    this.data.comparison = data.comparison;
    this.data.live = data.live;
    this.selection = nothing;
    if (kind === "step" || kind === "span") this.selectAgain(kind, index);
    this.tell("view");
  }
  private selectAgain(kind: string, index: number): void {
    this.quiet = true;
    if (!Number.isInteger(index)) this.clear();
    else if (kind === "step") this.selectStep(index);
    else if (kind === "span") this.selectSpan(index);
    else if ((ROW_KEYS as readonly string[]).includes(kind)) this.selectRow(kind as RowKey, index);
    this.quiet = false;
  }

  // ---- address
  private timer = 0;
  private write(step = false): void {
    const q = new URLSearchParams(this.params.size ? [...this.params] : []);
    if (this.data.profiles.length > 1 && this.shown === 0) q.set("of", "0");
    if (this.selection.kind !== "none") q.set("sel", `${this.selection.kind}-${this.selection.index}`);
    const text = q.toString();
    const hash = `#${this.view}${text ? `?${text}` : ""}`;
    const put = (): void => {
      this.timer = 0;
      if (location.hash === hash) return;
      this.writing = true;
      try {
        if (step) history.pushState(null, "", hash);
        else history.replaceState(null, "", hash);
      } catch {
        // A page inside a sandboxed frame (a notebook) has no address of its own.
      }
      this.writing = false;
    };
    clearTimeout(this.timer);
    if (step) put();
    else this.timer = window.setTimeout(put, 150); // browsers allow few changes per second
  }
  read(): void {
    const hash = location.hash.slice(1);
    const at = hash.indexOf("?");
    const q = new URLSearchParams(at < 0 ? "" : hash.slice(at + 1));
    this.view = (at < 0 ? hash : hash.slice(0, at)) || "summary";
    if (this.data.profiles.length > 1) this.shown = q.get("of") === "0" ? 0 : 1;
    const [kind, index] = (q.get("sel") ?? "").split("-");
    q.delete("of");
    q.delete("sel");
    this.params = new Map(q.entries());
    this.selection = nothing;
    if (kind && index !== undefined) this.selectAgain(kind, Number(index));
    this.tell("view");
  }
}
