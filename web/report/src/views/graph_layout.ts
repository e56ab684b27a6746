// SPDX-License-Identifier: Apache-2.0
// Asks the worker for a layout. The newest question counts: a worker that still computes an older one is ended. The
// last answer is kept, so the same graph shows at once when the view is opened again.
import { type Layout, layout } from "../layout";
import type { LayoutRequest } from "../layout.worker";
import text from "worker-text";
import type { Model } from "./graph_model";

let last: { request: LayoutRequest; answer: Layout } | null = null;

const sameNumbers = (a: ArrayLike<number>, b: ArrayLike<number>): boolean => {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
};
const same = (a: LayoutRequest, b: LayoutRequest): boolean =>
  a.n === b.n && sameNumbers(a.edges, b.edges) && sameNumbers(a.widths, b.widths) && sameNumbers(a.heights, b.heights);

function requestOf(model: Model): LayoutRequest {
  const edges = new Uint32Array(2 * model.links.length);
  model.links.forEach((link, i) => edges.set([link.from, link.to], 2 * i));
  return {
    n: model.boxes.length,
    edges,
    widths: Float64Array.from(model.boxes, (b) => b.w),
    heights: Float64Array.from(model.boxes, (b) => b.h),
  };
}

/** null where the page may have none: in some sandboxed frames. */
function startWorker(): Worker | null {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return new Worker(url);
  } catch {
    return null;
  } finally {
    setTimeout(() => URL.revokeObjectURL(url), 10_000); // not before the worker has read it
  }
}

export class Layouter {
  private worker: Worker | null = null;
  private busy = false;
  private timer = 0;

  /** Calls `done` with the drawing of the model; at once when it is known. */
  lay(model: Model, done: (answer: Layout) => void): void {
    const request = requestOf(model);
    if (last && same(last.request, request)) return done(last.answer);
    if (this.busy) this.close();
    const finish = (answer: Layout): void => {
      this.busy = false;
      last = { request, answer };
      done(answer);
    };
    const here = (): void => {
      this.close();
      this.timer = window.setTimeout(() => finish(layout(request.n, request.edges, request.widths, request.heights)), 20);
    };
    this.busy = true;
    this.worker ??= startWorker();
    if (!this.worker) return here();
    this.worker.onmessage = (event: MessageEvent<Layout>) => finish(event.data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      here();
    };
    this.worker.postMessage(request);
  }

  close(): void {
    clearTimeout(this.timer);
    this.worker?.terminate();
    this.worker = null;
    this.busy = false;
  }
}
