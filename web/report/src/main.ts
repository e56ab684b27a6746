// SPDX-License-Identifier: Apache-2.0
// The frame of the page: reads the profile that stands in the file, and keeps menu, view, details and keys together.
import { orderTypes } from "./colors";
import { bytesOf, decode, inflate } from "./decode";
import { showDetails } from "./details";
import { append, button, clear, empty, h, perFrame, tooltip } from "./dom";
import * as f from "./format";
import { live } from "./live";
import { nameFiles } from "./picture";
import { type Comparison, onlyTrends, type PageData } from "./profile";
import { Page } from "./state";
import type { Opened, View } from "./view";
import { VIEWS } from "./views";

const app = document.getElementById("app") as HTMLElement;

async function embedded(): Promise<PageData> {
  const data: PageData = { profiles: [], comparison: null, live: false };
  for (const block of document.querySelectorAll("script[type='application/x-sonde-profile']")) {
    const profile = decode(await inflate(bytesOf(block.textContent ?? "")));
    profile.title = block.getAttribute("title") || profile.model;
    data.profiles.push(profile);
    block.remove(); // the text would stay in memory beside what was made of it
  }
  const compared = document.querySelector("script[type='application/x-sonde-comparison']");
  if (compared && data.profiles.length === 2) {
    data.comparison = JSON.parse(new TextDecoder().decode(await inflate(bytesOf(compared.textContent ?? "")))) as Comparison;
  }
  return data;
}

function openTheme(): void {
  const now = document.documentElement.dataset["theme"];
  const dark = now ? now === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset["theme"] = dark ? "light" : "dark";
}

function help(view: View): void {
  const keys: [string, string][] = [
    ["1 … 9", "the first nine views of the menu"],
    ["/", "search or filter"],
    ["Esc", "clear the selection"],
    ["T", "light or dark"],
    ["?", "this help"],
    ...(view.keys ?? []),
  ];
  const dialog = h(
    "dialog",
    { "aria-label": "Keys" },
    h("h2", null, "Keys"),
    h("dl", { class: "facts" }, keys.map(([key, what]) => [h("dt", null, key.split(" ").map((k) => [h("kbd", null, k), " "])), h("dd", null, what)])),
    h("p", { class: "faint" }, "The address keeps the view and the selection: copy it to share what you see."),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")),
  );
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.querySelector("button")?.addEventListener("click", (e) => {
    e.preventDefault();
    dialog.close();
  });
  dialog.showModal();
}

/** Of a path its last part: profiles of other programs name no model, so their file tells which one is shown. */
const fileName = (path: string): string => path.split(/[\\/]/).filter(Boolean).pop() ?? "";

class Shell {
  private readonly page: Page;
  private readonly main = h("main", { id: "view", tabindex: -1 });
  private readonly panel = h("aside", { "aria-label": "Details of the selection" });
  private readonly top = h("header", { class: "top" });
  private readonly tabs = h("nav", { class: "tabs", role: "tablist", "aria-label": "Views" });
  private readonly said = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  private view: View | null = null;
  private opened: Opened = {};

  constructor(page: Page) {
    this.page = page;
    this.panel.hidden = true;
    clear(app);
    app.append(h("div", { class: "frame" }, this.top, this.tabs, this.main, this.panel), this.said);
    page.on((why) => (why === "selection" ? this.selected() : why === "view" ? this.show() : undefined));
    new ResizeObserver(perFrame(() => this.opened.resized?.())).observe(this.main);
    addEventListener("keydown", (e) => this.key(e));
    addEventListener("beforeprint", () => this.opened.resized?.());
    page.read();
  }

  private views(): View[] {
    const trendsOnly = this.page.data.profiles.every(onlyTrends);
    return VIEWS.filter((view) => view.shown(this.page.data) && (!trendsOnly || view.id === "trend"));
  }

  private heading(): void {
    const p = this.page.profile;
    const { wall, iterations } = p.summary;
    const trends = onlyTrends(p) ? (p.trends ?? []) : [];
    const name = trends.length > 1 ? `${f.count(trends.length)} trends` : (trends[0]?.title ?? (p.model || fileName(p.title)));
    nameFiles(name);
    clear(this.top);
    append(this.top, [
      h("span", { class: "brand" }, "sonde"),
      h("h1", { dir: "auto", title: f.shorten(f.plain(name), 500) }, f.shorten(f.plain(name || "a profile"), 80)),
      h(
        "span",
        { class: "headline" },
        iterations
          ? [h("b", null, f.time(wall.p50)), h("span", { class: "hide-narrow" }, ` median of ${f.count(iterations)} ${iterations === 1 ? "run" : "runs"}`)]
          : trends.length
            ? null
            : "no measured run",
      ),
      this.page.data.live ? h("span", { class: "good" }, "● live") : null,
      h("span", { class: "space" }),
      this.page.data.profiles.length > 1 ? this.whichProfile() : null,
      button("Keys", () => this.view && help(this.view), { class: "hide-narrow", title: "Keys (?)" }),
      button("◐", openTheme, { "aria-label": "Light or dark", title: "Light or dark (T)" }),
    ]);
    document.title = `${f.shorten(f.plain(name || "profile"), 60)} – sonde`;
  }

  private whichProfile(): HTMLElement {
    return h(
      "span",
      { class: "segments", role: "group", "aria-label": "Profile" },
      this.page.data.profiles.map((p, i) =>
        button(i ? "after" : "before", () => this.page.show(i), { "aria-pressed": String(i === this.page.shown), title: f.shorten(f.plain(p.title), 200) }),
      ),
    );
  }

  private show(): void {
    const views = this.views();
    const view = views.find((v) => v.id === this.page.view) ?? views[0];
    this.page.view = view.id;
    this.heading();
    clear(this.tabs);
    views.forEach((v) => {
      const chosen = v === view;
      this.tabs.append(
        button(v.title, () => this.page.go(v.id), {
          role: "tab",
          id: `tab-${v.id}`,
          "aria-selected": String(chosen),
          "aria-controls": "view",
          tabindex: chosen ? 0 : -1,
          onkeydown: (e: KeyboardEvent) => this.alongTabs(e, v),
        }),
      );
    });
    this.opened.close?.();
    tooltip(null);
    clear(this.main);
    this.main.className = "";
    this.main.setAttribute("role", "tabpanel");
    this.main.setAttribute("aria-labelledby", `tab-${view.id}`);
    this.main.scrollTop = 0;
    showDetails(this.panel, this.page);
    this.view = view;
    try {
      this.opened = view.open(this.main, this.page);
    } catch (error) {
      this.opened = {};
      console.error(error);
      clear(this.main);
      this.main.append(empty("This view could not be drawn", String(error)));
    }
    this.said.textContent = `${view.title} view`;
  }

  private alongTabs(e: KeyboardEvent, from: View): void {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const views = this.views();
    const next = views[(views.indexOf(from) + step + views.length) % views.length];
    this.page.go(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  }

  private selected(): void {
    const wasHidden = this.panel.hidden;
    showDetails(this.panel, this.page);
    this.said.textContent = this.page.selection.kind === "none" ? "Nothing selected" : `Selected ${f.shorten(f.plain(this.page.selection.title), 100)}`;
    this.opened.selected?.();
    if (wasHidden !== this.panel.hidden) this.opened.resized?.();
  }

  private key(e: KeyboardEvent): void {
    if (e.defaultPrevented) return;
    const target = e.target as HTMLElement;
    if (document.querySelector("dialog[open]")) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) {
      if (e.key === "Escape") target.blur();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (this.opened.key?.(e)) {
      e.preventDefault();
      return;
    }
    const number = Number(e.key);
    const views = this.views();
    if (number >= 1 && number <= views.length && e.key.length === 1) this.page.go(views[number - 1].id);
    else if (e.key === "/") this.opened.search?.focus();
    else if (e.key === "?") this.view && help(this.view);
    else if (e.key === "Escape") this.page.clear();
    else if (e.key === "t" || e.key === "T") openTheme();
    else return;
    e.preventDefault();
  }
}

async function start(): Promise<void> {
  const data = await embedded();
  if (!data.profiles.length) throw new Error("this page holds no profile");
  data.live = document.documentElement.hasAttribute("data-live");
  if (data.profiles.length > 1) orderTypes([...data.profiles].reverse()); // what is now decides
  const page = new Page(data);
  new Shell(page);
  document.documentElement.setAttribute("data-ready", "");
  if (data.live) live(page);
}

start().catch((error: unknown) => {
  clear(app);
  app.append(
    empty(
      "The profile in this page cannot be read",
      `${(error instanceof Error ? error.message : String(error)).replace(/\.$/, "")}.`,
      "A file that was cut off when it was copied can be written again: sonde report PROFILE -o report.html\nA browser from 2023 or later is needed.",
    ),
  );
  document.documentElement.setAttribute("data-failed", "");
});
