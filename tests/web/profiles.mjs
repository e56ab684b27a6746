// SPDX-License-Identifier: Apache-2.0
// The profiles the tests look at, made by the program itself (SONDE_PROGRAM) in a folder that goes when the tests end:
// five kinds of models, a model whose names are hostile, a comparison, and traces of other programs. With SONDE_PAGE,
// a page as web/report/build.mjs writes it, that one is tested instead of the page inside the program.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { hostileModel, hostileFile } from "./hostile.mjs";

const run = promisify(execFile);
const PROGRAM = process.env.SONDE_PROGRAM ?? "sonde";

export const MODELS = {
  cnn: { model: "zoo:tiny_resnet", runs: 20, op: "Conv" },
  transformer: { model: "zoo:tiny_bert", runs: 20, op: "MatMul" },
  control: { model: "zoo:tiny_loop", runs: 20, op: "Loop" },
  training: { model: "zoo:tiny_bert_train", runs: 5, op: "MatMul" },
  nodes: { model: "zoo:tiny_chain", runs: 3, op: "Add" }, // 2,000 of them
};

let made = null;
export function folder() {
  if (!made) {
    made = mkdtempSync(join(tmpdir(), "sonde-web-"));
    process.on("exit", () => rmSync(made, { recursive: true, force: true }));
  }
  return made;
}

export async function sonde(...args) {
  const env = { ...process.env, XDG_CACHE_HOME: join(folder(), "cache") };
  for (const name of Object.keys(env)) if (/^SONDE_(TIMING|TRACE|TRACE_LIMIT|PROFILE|LEVEL|THREADS|CPU|LOG)$/.test(name)) delete env[name];
  return run(PROGRAM, args, { env, maxBuffer: 1 << 26 });
}

const BLOCKS = /<script type="application\/x-sonde-[^>]*>[^<]*<\/script>\n/g;
export const MARK = "<!--profile-->";

/** The page without a profile, with MARK where one goes. */
export async function emptyPage() {
  if (process.env.SONDE_PAGE) return readFileSync(process.env.SONDE_PAGE, "utf8");
  const file = join(folder(), "empty.html");
  await sonde("profile", "zoo:tiny_mlp", "-q", "-n", "1", "-w", "0", "-o", file);
  let first = true;
  return readFileSync(file, "utf8").replace(BLOCKS, () => {
    const mark = first ? MARK : "";
    first = false;
    return mark;
  });
}

/** Moves the profiles of a file into the page that is to be tested, if that is another one. */
async function intoPage(file) {
  if (!process.env.SONDE_PAGE) return file;
  const blocks = readFileSync(file, "utf8").match(BLOCKS) ?? [];
  writeFileSync(file, (await emptyPage()).replace(MARK, () => blocks.join("")));
  return file;
}

const kept = new Map();
const once = (key, make) => {
  if (!kept.has(key)) kept.set(key, make());
  return kept.get(key);
};

/** The line of JSON at the head of a page's data. */
function headerOf(file) {
  const data = gunzipSync(readFileSync(file));
  return JSON.parse(data.subarray(0, data.indexOf(10)).toString("utf8"));
}

async function profile(name, model, runs, ...options) {
  const at = (suffix) => join(folder(), `${name}${suffix}`);
  const outputs = [".html", ".summary.json", ".pftrace", ".page.gz"].flatMap((suffix) => ["-o", at(suffix)]);
  await sonde("profile", model, "-q", "-w", "1", "-n", String(runs), "--memory", ...options, ...outputs);
  await intoPage(at(".html"));
  return { name, page: at(".html"), trace: at(".pftrace"), summary: JSON.parse(readFileSync(at(".summary.json"), "utf8")), header: headerOf(at(".page.gz")) };
}

/** One of MODELS, profiled: { page, trace, summary, op }. */
export const profileOf = (kind) =>
  once(kind, async () => ({ ...(await profile(kind, MODELS[kind].model, MODELS[kind].runs, "--level", "3", "-t", "2")), op: MODELS[kind].op }));

/** Level 1 knows operators only: nothing of the start. */
export const levelOneProfile = () => once("level1", () => profile("level1", "zoo:tiny_cnn", 10, "--level", "1"));

/** A model whose every name wants to be something else than text. */
export const hostileProfile = () =>
  once("hostile", async () => {
    const file = join(folder(), hostileFile);
    writeFileSync(file, hostileModel());
    return profile("hostile-profile", file, 3);
  });

/** Two profiles in one page: the second is of a larger network, so that there are new and slower rows. */
export const comparison = () =>
  once("comparison", async () => {
    const before = await profile("before", "zoo:tiny_cnn", 30);
    const after = await profile("after", "zoo:tiny_resnet", 30);
    const [page, json] = [join(folder(), "comparison.html"), join(folder(), "comparison.json")];
    await sonde("diff", before.trace, after.trace, "-q", "-o", page);
    const { stdout } = await sonde("diff", before.trace, after.trace, "--json", "-");
    writeFileSync(json, stdout);
    return { page: await intoPage(page), before, after, diff: JSON.parse(stdout) };
  });

/** A profile beside itself: nothing differs. */
export const sameTwice = () =>
  once("same", async () => {
    const { trace } = await profileOf("cnn");
    const page = join(folder(), "same.html");
    await sonde("diff", trace, trace, "-q", "-o", page);
    return { page: await intoPage(page) };
  });

async function report(name, trace) {
  const [from, page, figures] = ["json", "html", "summary.json"].map((suffix) => join(folder(), `${name}.${suffix}`));
  writeFileSync(from, JSON.stringify(trace));
  await sonde("report", from, "-q", "-o", page, "-o", figures);
  return { name, page: await intoPage(page), summary: JSON.parse(readFileSync(figures, "utf8")) };
}

/** ONNX Runtime's own profile of three runs of two nodes. */
export const onnxruntimeProfile = () =>
  once("onnxruntime", () => {
    const event = (cat, name, ts, dur, args = {}) => ({ cat, pid: 7, tid: 9, ph: "X", name, ts, dur, args });
    const shapes = { input_type_shape: [{ float: [1, 3, 8, 8] }, { float: [4, 3, 1, 1] }], output_type_shape: [{ float: [1, 4, 8, 8] }] };
    const runs = [1000, 2000, 3000].flatMap((t) => [
      event("Node", "conv_kernel_time", t + 10, 300, { op_name: "Conv", provider: "CPUExecutionProvider", ...shapes }),
      event("Node", "relu_kernel_time", t + 320, 50, { op_name: "Relu", provider: "CPUExecutionProvider" }),
      event("Session", "SequentialExecutor::Execute", t + 1, 498),
      event("Session", "model_run", t, 500),
    ]);
    return report("onnxruntime", [event("Session", "session_initialization", 5, 100), ...runs]);
  });

/** Twenty runs of a large step and a small one, and another in which the small one waited for 40 ms. */
export const hiccupProfile = () =>
  once("hiccup", () => {
    const event = (cat, name, ts, dur, args = {}) => ({ cat, pid: 7, tid: 9, ph: "X", name, ts, dur, args });
    const node = (name, ts, dur, op, shape) =>
      event("Node", `${name}_kernel_time`, ts, dur, { op_name: op, provider: "CPUExecutionProvider", input_type_shape: [{ float: shape }], output_type_shape: [{ float: shape }] });
    const runs = [...Array(21).keys()].flatMap((k) => {
      const [t, small] = [100_000 * (k + 1), k === 10 ? 40_000 : 20];
      return [
        node("large", t + 10, 900, "Conv", [1, 3, 8, 8]),
        node("small", t + 915, small, "Relu", [1, 4, 8, 8]),
        event("Session", "SequentialExecutor::Execute", t + 1, 960 + small),
        event("Session", "model_run", t, 970 + small),
      ];
    });
    return report("hiccup", [event("Session", "session_initialization", 5, 100), ...runs]);
  });

/** PyTorch's trace of three training steps: forward, backward and optimiser as its users label them. */
export const pytorchProfile = () =>
  once("pytorch", () => {
    const event = (cat, name, ts, dur, args = {}) => ({ ph: "X", cat, name, pid: 5, tid: 5, ts: 1.7e15 + ts, dur, args });
    const dims = { "Input Dims": [[8, 64], [64, 64]], "Input type": ["float", "float"] };
    const steps = [0, 1, 2].flatMap((k) => [
      event("user_annotation", `ProfilerStep#${k + 1}`, 2000 * k, 1000),
      event("user_annotation", "forward", 2000 * k + 10, 290),
      event("cpu_op", "aten::mm", 2000 * k + 20, 200, dims),
      event("cpu_op", "aten::relu", 2000 * k + 230, 50),
      event("user_annotation", "backward", 2000 * k + 310, 390),
      event("cpu_op", "aten::mm", 2000 * k + 320, 300, dims),
      event("user_annotation", "optimizer", 2000 * k + 710, 200),
      event("cpu_op", "aten::add_", 2000 * k + 720, 100),
    ]);
    return report("pytorch", { schemaVersion: 1, deviceProperties: [], traceEvents: steps, traceName: "step.json" });
  });
