// SPDX-License-Identifier: Apache-2.0
// The layout beside the page: a graph comes as a message, its drawing goes back. build.mjs bundles this file into a
// text, from which the graph view makes the worker.
import { layout } from "./layout";

export interface LayoutRequest {
  n: number;
  edges: Uint32Array;
  widths: Float64Array;
  heights: Float64Array;
}

self.onmessage = (event: MessageEvent<LayoutRequest>): void => {
  const { n, edges, widths, heights } = event.data;
  self.postMessage(layout(n, edges, widths, heights));
};
