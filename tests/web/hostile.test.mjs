// SPDX-License-Identifier: Apache-2.0
// Names are text, whatever is in them; and the page's policy would stop what got through.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { csvRows } from "./figures.mjs";
import { hostileNames } from "./hostile.mjs";
import { launch, open, PHONE } from "./page.mjs";
import { hostileProfile } from "./profiles.mjs";

const DRAWN = new Set(["svg", "g", "rect", "path", "circle", "line", "polyline", "polygon", "text", "tspan", "title", "defs", "pattern", "clipPath", "marker"]);

let browser, profile;
before(async () => {
  profile = await hostileProfile();
  browser = await launch();
});
after(() => browser?.close());

/** Whatever a name might have become. */
const escaped = (o) =>
  o.page.evaluate(() => {
    const direction = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
    const control = /[\u0000-\u0008\u000b-\u001f\u007f]/;
    const found = [];
    if (window.__pwned !== undefined) found.push(`a script ran: ${window.__pwned}`);
    if (document.scripts.length !== 1) found.push(`${document.scripts.length} scripts`);
    for (const e of document.querySelectorAll("img, iframe, object, embed, i, u, #app script, svg svg")) found.push(`an element ${e.outerHTML.slice(0, 80)}`);
    for (const e of document.querySelectorAll("*")) {
      for (const a of e.attributes) {
        if (/^on/i.test(a.name)) found.push(`a handler ${a.name}`);
        if (direction.test(a.value)) found.push(`a mark of direction in ${e.localName} ${a.name}`);
      }
    }
    const text = document.body.innerText + document.title;
    if (direction.test(text)) found.push(`a mark of direction in the text: ${text.slice(text.search(direction) - 30, text.search(direction) + 30)}`);
    if (control.test(text)) found.push("a control character in the text");
    return found;
  });

test("hostile names are text in every view", async (t) => {
  for (const options of [{}, { size: PHONE }]) {
    const o = await open(browser, profile.page, options);
    try {
      for (const view of await o.views()) {
        await t.test(`${view}${options.size ? " on a phone" : ""}`, async () => {
          for (const sel of ["", "?sel=step-0", "?sel=step-4", "?sel=step-5"]) {
            await o.goto(`#${view}${sel}`);
            assert.doesNotMatch(await o.text(), /could not be drawn/);
            assert.deepEqual(await escaped(o), []);
            const wide = await o.page.evaluate(() => {
              const main = document.getElementById("view");
              return { page: document.documentElement.scrollWidth - innerWidth, view: main.scrollWidth - main.clientWidth };
            });
            assert.deepEqual(wide, { page: 0, view: 0 }, "a long name makes nothing wider");
          }
          assert.deepEqual(o.takeFaults(), []);
        });
      }
    } finally {
      await o.close();
    }
  }
});

test("hostile names are shown as they are", async () => {
  const o = await open(browser, profile.page, { hash: "#operators?by=node" });
  try {
    const text = await o.text();
    for (const name of [hostileNames.MARKUP, hostileNames.BREAKOUT, hostileNames.EMOJI, hostileNames.PROTO]) {
      assert.ok(text.includes(name), `${name} can be read`);
    }
    assert.ok(text.includes("longlonglong") && !text.includes(hostileNames.LONG), "very long ones in part");
    assert.match(await o.page.title(), /<img src=x/);
  } finally {
    await o.close();
  }
});

test("tooltips over hostile names hold text", async () => {
  const o = await open(browser, profile.page, { hash: "#timeline" });
  try {
    for (const view of ["timeline", "graph", "flame", "memory"]) {
      await o.show(view);
      const box = await o.page.locator("#view canvas").first().boundingBox();
      let seen = 0;
      for (let k = 0; k < 60; k++) {
        await o.page.mouse.move(box.x + box.width * (0.1 + 0.08 * (k % 10)), box.y + box.height * (0.1 + 0.13 * Math.floor(k / 10)));
        if (await o.page.$(".tooltip:not([hidden])")) seen++;
        assert.deepEqual(await escaped(o), [], view);
      }
      if (view === "timeline" || view === "flame") assert.ok(seen > 0, `${view} has tooltips`);
    }
  } finally {
    await o.close();
  }
});

test("files saved from hostile names are what they say", async () => {
  const o = await open(browser, profile.page, { hash: "#operators?by=node" });
  try {
    const { bytes } = await o.download(o.page.locator(`#view button:text-is("CSV")`));
    const rows = csvRows(bytes.toString("utf8"));
    assert.ok(rows.every((row) => row.length === rows[0].length), "every line has all fields");
    assert.ok(rows.some((row) => row.includes(hostileNames.MARKUP)), "names are whole");
    assert.ok(rows.flat().every((field) => !/^[=+@\t]/.test(field)), "no field is a formula");
    for (const view of ["timeline", "graph", "flame", "memory", "summary"]) {
      await o.show(view);
      const buttons = o.page.locator(`#view button:text-is("SVG"):visible`);
      for (let i = 0; i < (await buttons.count()); i++) {
        const svg = await o.download(buttons.nth(i));
        const found = await o.parseSvg(svg.bytes.toString("utf8"));
        const foreign = found.names.filter((name) => !DRAWN.has(name));
        assert.deepEqual([found.root, foreign, found.handlers], ["svg", [], []], `${svg.name} of ${view}`);
      }
    }
  } finally {
    await o.close();
  }
});

test("the policy stands in the file and allows nothing but the page's own script and style", async () => {
  const o = await open(browser, profile.page);
  try {
    const policy = await o.page.getAttribute("meta[http-equiv=Content-Security-Policy]", "content");
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /connect-src 'none'/);
    assert.match(policy, /script-src 'sha256-[A-Za-z0-9+/=]+'(;|$)/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.ok(await o.page.evaluate(() => document.head.firstElementChild.nextElementSibling.httpEquiv === "Content-Security-Policy"), "before all it must hold for");
    const stopped = await o.page.evaluate(async () => {
      const seen = new Set();
      document.addEventListener("securitypolicyviolation", (e) => seen.add(e.effectiveDirective));
      const box = document.body.appendChild(document.createElement("div"));
      box.innerHTML = `<img src="nothing.png" onerror="window.__pwned = 1"><p style="color: red" onclick="window.__pwned = 2">x</p>`;
      box.lastChild.click();
      const script = document.createElement("script");
      script.textContent = "window.__pwned = 3";
      box.append(script);
      const asked = await fetch("http://127.0.0.1:9/").then(() => "went out", () => "stopped");
      await new Promise((done) => setTimeout(done, 200));
      return { seen: [...seen].sort(), asked, ran: window.__pwned ?? "nothing" };
    });
    assert.equal(stopped.ran, "nothing");
    assert.equal(stopped.asked, "stopped");
    for (const rule of ["connect-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr"]) {
      assert.ok(stopped.seen.includes(rule), `${rule} among ${stopped.seen}`);
    }
  } finally {
    await o.close();
  }
});

test("a page that was cut off says so", async () => {
  const { readFileSync, writeFileSync } = await import("node:fs");
  const file = profile.page.replace(/\.html$/, "-cut.html");
  const whole = readFileSync(profile.page, "utf8");
  writeFileSync(file, whole.replace(/(<script type="application\/x-sonde-profile"[^>]*>)([^<]{400})[^<]*/, "$1$2"));
  const o = await open(browser, file, { goto: false });
  try {
    await assert.rejects(o.goto(), /cannot be read/);
  } finally {
    await o.close();
  }
});
