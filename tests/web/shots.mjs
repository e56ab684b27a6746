// SPDX-License-Identifier: Apache-2.0
// Pictures of every view, for people to look at:  SONDE_PROGRAM=… node shots.mjs FOLDER [KIND…]
// FOLDER/cnn-timeline-1440-dark.png and so on; kinds are those of profiles.mjs and "comparison".
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DESKTOP, launch, open, PHONE } from "./page.mjs";
import { comparison, MODELS, profileOf } from "./profiles.mjs";

const [folder, ...kinds] = process.argv.slice(2);
if (!folder) throw new Error("usage: node shots.mjs FOLDER [KIND…]");
mkdirSync(folder, { recursive: true });

const browser = await launch();
try {
  for (const kind of kinds.length ? kinds : ["cnn", "transformer"]) {
    if (kind !== "comparison" && !(kind in MODELS)) throw new Error(`no kind ${kind}: there are ${Object.keys(MODELS)}, comparison`);
    const { page } = kind === "comparison" ? await comparison() : await profileOf(kind);
    for (const size of [DESKTOP, PHONE]) {
      for (const dark of [false, true]) {
        const o = await open(browser, page, { size, dark });
        for (const view of kind === "comparison" ? ["compare"] : await o.views()) {
          await o.show(view);
          await o.page.screenshot({ path: join(folder, `${kind}-${view}-${size.width}-${dark ? "dark" : "light"}.png`) });
        }
        // What a selection adds: the details beside the view.
        if (kind !== "comparison") {
          await o.goto("#graph?sel=node-0");
          await o.page.screenshot({ path: join(folder, `${kind}-selected-${size.width}-${dark ? "dark" : "light"}.png`) });
        }
        await o.close();
      }
    }
  }
} finally {
  await browser.close();
}
