// SPDX-License-Identifier: Apache-2.0
// A model in which every name wants to be something else than text: markup, script, marks of direction, control
// characters, and very much text. ONNX files are protocol buffers; the few fields needed are written by hand.

const utf8 = (text) => Buffer.from(text, "utf8");

function varint(value) {
  const bytes = [];
  let v = BigInt(value);
  while (v > 127n) {
    bytes.push(Number(v & 127n) | 128);
    v >>= 7n;
  }
  bytes.push(Number(v));
  return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, ...parts) => {
  const all = Buffer.concat(parts);
  return Buffer.concat([varint((field << 3) | 2), varint(all.length), all]);
};
const text = (field, value) => bytes(field, utf8(value));

// If any of these became markup or script, __pwned would be set or an element would be there.
const MARKUP = `<img src=x onerror="window.__pwned=1"><script>window.__pwned=2</script>`;
const BREAKOUT = `"'><svg onload=__pwned=3></script></style>--><iframe srcdoc=x>&lt;b&gt;&#60;`;
const RTL = "abc\u202eLRO\u2066evil\u2069\u202c\u200fשלום";
const EMOJI = "👩‍👩‍👧‍👦🇺🇳🔥 e\u0301 𝔘𝔫𝔦";
const CONTROL = "tab\tline\nreturn\rbell\u0007escape\u001b[31mred";
const LONG = "long".repeat(2560);
const FORMULA = `=cmd|' /C calc'!A0,"quoted"`;
const PROTO = "__proto__";

export const hostileNames = { MARKUP, BREAKOUT, RTL, EMOJI, CONTROL, LONG, FORMULA, PROTO };
/** The file's own name, which is the model's; it has no slash. */
export const hostileFile = `<img src=x onerror=__pwned=4> "\u202eevil 🔥.onnx`;

const ELEMENT_FLOAT = 1;
function valueInfo(field, name) {
  const shape = bytes(2, bytes(1, number(1, 8)), bytes(1, number(1, 16))); // dims 8 and 16
  return bytes(field, text(1, name), bytes(2, bytes(1, number(1, ELEMENT_FLOAT), shape)));
}
const node = (op, name, inputs, outputs) =>
  bytes(1, ...inputs.map((i) => text(1, i)), ...outputs.map((o) => text(2, o)), text(3, name), text(4, op));

/** A chain of nodes, each with one of the names, so does the tensor behind it. */
export function hostileModel() {
  const names = Object.values(hostileNames);
  const ops = ["Softmax", "Sin", "LogSoftmax", "Cos"]; // which are not fused into one step
  let tensor = "<b>input</b>";
  const parts = [];
  names.forEach((name, i) => {
    const next = i + 1 < names.length ? `${name}\u2028<i>${i}</i>` : "<u>output</u>";
    parts.push(node(ops[i % ops.length], name, [tensor], [next]));
    tensor = next;
  });
  parts.push(text(2, `graph ${MARKUP}`), valueInfo(11, "<b>input</b>"), valueInfo(12, "<u>output</u>"));
  const opset = bytes(8, number(2, 17));
  return Buffer.concat([number(1, 8), text(2, `producer ${BREAKOUT}`), bytes(7, ...parts), opset]);
}
