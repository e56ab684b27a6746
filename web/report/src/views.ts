// SPDX-License-Identifier: Apache-2.0
// The views in the order of the menu.
import type { View } from "./view";
import { compare } from "./views/compare";
import { flame } from "./views/flame";
import { graph } from "./views/graph";
import { memory } from "./views/memory";
import { operators } from "./views/operators";
import { roofline } from "./views/roofline";
import { startup } from "./views/startup";
import { summary } from "./views/summary";
import { timeline } from "./views/timeline";
import { trend } from "./views/trend";
import { whatif } from "./views/whatif";

export const VIEWS: readonly View[] = [
  summary,
  compare,
  trend,
  timeline,
  operators,
  graph,
  memory,
  roofline,
  startup,
  flame,
  whatif,
];
