// SPDX-License-Identifier: Apache-2.0
// axe-core in a page that is open. Its text is evaluated by the debugger, so the page's own policy stays as it is.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Faults that keep people from using the page: ["rule: what it is; where"]. */
export async function seriousFaults(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(source);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => `${v.id}: ${v.help}; ${v.nodes.slice(0, 3).map((n) => `${n.target.join(" ")} (${n.any[0]?.message ?? n.all[0]?.message ?? ""})`).join("; ")}${v.nodes.length > 3 ? ` and ${v.nodes.length - 3} more` : ""}`);
}
