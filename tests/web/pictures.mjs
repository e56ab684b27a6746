// SPDX-License-Identifier: Apache-2.0
// The pictures of README.md and docs/:  node pictures.mjs FOLDER PROFILE.html COMPARISON.html
// Made from pages of a real model on a quiet machine, not from the tests' tiny ones:
//   sonde profile zoo:efficientnet_b0 --memory --level 3 -t 2 --duration 3 -o avx512.pftrace -o profile.html
//   sonde profile zoo:efficientnet_b0 --cpu avx2 --level 3 -t 2 --duration 3 -o avx2.pftrace
//   sonde diff avx2.pftrace avx512.pftrace -o comparison.html
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { launch, open, PHONE } from "./page.mjs";

const SIZE = { width: 1280, height: 760 };
const [folder, profile, comparison] = process.argv.slice(2);
if (!comparison) throw new Error("usage: node pictures.mjs FOLDER PROFILE.html COMPARISON.html");
mkdirSync(folder, { recursive: true });

const PICTURES = [
  { name: "report-summary", page: profile, hash: "#summary" },
  { name: "report-timeline", page: profile, hash: "#timeline", keys: ["ArrowRight"] },
  { name: "report-graph", page: profile, hash: "#graph?sel=node-0", dark: true },
  { name: "report-memory", page: profile, hash: "#memory", at: ".memory-part" },
  { name: "report-roofline", page: profile, hash: "#roofline" },
  { name: "report-compare", page: comparison, hash: "#compare" },
  { name: "report-phone", page: profile, hash: "#operators", size: PHONE, dark: true },
];

const browser = await launch();
try {
  for (const { name, page, hash, dark = false, size = SIZE, keys = [], at } of PICTURES) {
    const o = await open(browser, resolve(page), { hash, dark, size });
    for (const key of keys) await o.page.keyboard.press(key);
    if (at) await o.page.$eval(`#view ${at}`, (e) => e.scrollIntoView());
    await o.settle();
    await o.page.screenshot({ path: join(folder, `${name}.png`) });
    await o.close();
  }
} finally {
  await browser.close();
}
