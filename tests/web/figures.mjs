// SPDX-License-Identifier: Apache-2.0
// Figures as the page writes them, read back and held against the profile's own.
import assert from "node:assert/strict";

const TIMES = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };
const BYTES = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };
const FIGURE = /^[−-]?(\d[\d\u202f]*(?:\.\d+)?)\u202f?(\S+)?$/u;

function parsed(text, units) {
  const found = FIGURE.exec(text.trim());
  assert.ok(found, `"${text}" is no figure with a unit`);
  assert.ok(found[2] in units, `"${text}" has none of the units ${Object.keys(units)}`);
  const digits = found[1].replace(/\u202f/g, "");
  return { value: Number(digits) * units[found[2]], digits };
}

/** Three significant digits of the figure that is meant. Files of figures round to a nanosecond. */
function holds(text, wanted, units, slack, what) {
  if (wanted === 0) return assert.match(text, /^0\u202f/, what);
  const { value, digits } = parsed(text, units);
  const difference = Math.abs(value - Math.abs(wanted));
  assert.ok(difference <= Math.abs(wanted) * 0.0051 + slack, `${what}: the page says ${text}, the profile ${wanted}`);
  assert.equal(digits.replace(".", "").replace(/^0+/, "").length, Math.max(3, digits.split(".")[0].length), `${what}: "${text}" has three digits`);
  if (Number(digits) >= 1000) assert.equal(Number(digits), Number(Number(digits).toPrecision(3)), `${what}: "${text}" has three digits and zeros`);
}
export const showsTime = (text, ns, what = "") => holds(text, ns, TIMES, 0.51, what);
export const showsBytes = (text, bytes, what = "") => holds(text, bytes, BYTES, 0.5, what);
export function showsShare(text, share, what = "") {
  if (share * 100 < 0.01) return assert.match(text, /^(0|<\u202f0\.01)\u202f%$/, what);
  const { value } = parsed(text, { "%": 0.01 });
  assert.ok(Math.abs(value - share) <= share * 0.0051 + 1e-6, `${what}: the page says ${text}, the profile ${share}`);
}
export const nanoseconds = (text) => parsed(text, TIMES).value;

/** CSV as rows of fields. */
export function csvRows(text) {
  const rows = [];
  let row = [];
  const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|$)/gy;
  while (field.lastIndex < text.length) {
    const [, value, end] = field.exec(text) ?? assert.fail(`no CSV behind ${text.slice(0, field.lastIndex).slice(-40)}`);
    row.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value);
    if (end === ",") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

/** All rows of a table, also those that are elements only when they are in sight: [{ title of the column: text }]. */
export function tableRows(page, label) {
  return page.evaluate(async (name) => {
    const grid = [...document.querySelectorAll("[role=grid]")].find((g) => g.getAttribute("aria-label") === name);
    if (!grid) throw new Error(`no table "${name}"`);
    const titles = [...grid.querySelectorAll("[role=columnheader] button")].map((b) => b.firstChild.textContent);
    const rows = new Map();
    const n = Number(grid.getAttribute("aria-rowcount")) - 1;
    const before = grid.scrollTop;
    for (let y = 0; rows.size < n && y <= grid.scrollHeight; y += 300) {
      grid.scrollTop = y;
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      for (const row of grid.querySelectorAll("[role=row][aria-rowindex]")) {
        const cells = [...row.querySelectorAll("[role=gridcell]")].map((c, i) => [titles[i], c.textContent]);
        rows.set(Number(row.getAttribute("aria-rowindex")), { ...Object.fromEntries(cells), selected: row.getAttribute("aria-selected") === "true" });
      }
    }
    grid.scrollTop = before;
    return [...rows].sort((a, b) => a[0] - b[0]).map(([, row]) => row);
  }, label);
}
