// SPDX-License-Identifier: Apache-2.0
// Steps by hierarchy: a large graph is first shown as a few boxes that open. Names such as "/layer1/layer1.0/conv1"
// tell where a node belongs; where they tell nothing, steps that run one behind the other make a group.
import { type Profile, stepNode } from "../profile";

export interface Group {
  id: number; // the same whenever the same steps are grouped
  name: string;
  parent: Group | null;
  children: (Group | number)[]; // groups, and steps by their index in the profile
  steps: number[]; // all of them, also of groups inside
}

const DEEPEST = 12;
const MANY = 300; // children of one group; more are cut into runs
const RUN = 50;
/** Above so many steps a graph opens as groups. */
export const LARGE = 600;
const FEW = 8; // boxes say too little: the largest of them is opened

export const isGroup = (child: Group | number): child is Group => typeof child !== "number";

/** "/" or ".", whichever most names have; "": neither. */
function separator(names: string[]): string {
  for (const sign of ["/", "."]) {
    let n = 0;
    for (const name of names) if (name.indexOf(sign, 1) > 0) n++;
    if (2 * n > names.length) return sign;
  }
  return "";
}

interface Branch {
  name: string;
  children: (Branch | number)[];
  branches: Map<string, Branch>;
}
const branch = (name: string): Branch => ({ name, children: [], branches: new Map() });

/** By step: the name that says where it belongs. Of a step without one, it is that of who makes what it reads. */
function placesOf(p: Profile, steps: number[]): string[] {
  const makers = new Map<string, string>();
  const keyOf = (t: { name: string; value?: number }): string => (t.value ? `#${t.value}` : t.name);
  return steps.map((i) => {
    const step = p.steps[i];
    const own = step.name || (step.op.startsWith("[") ? (step.origins[0]?.name ?? "") : "");
    const name = own || (step.inputs.map((t) => makers.get(keyOf(t))).find(Boolean) ?? "") || (step.op.startsWith("[") ? stepNode(step) : "");
    for (const t of step.outputs) if (keyOf(t)) makers.set(keyOf(t), name);
    return name.slice(0, 400);
  });
}

function branchesOf(p: Profile, steps: number[]): Branch {
  const names = placesOf(p, steps);
  const sign = separator(names);
  const root = branch("");
  steps.forEach((step, i) => {
    let at = root;
    const path = sign ? names[i].split(sign).filter(Boolean).slice(0, -1) : [];
    for (const name of path.slice(0, DEEPEST)) {
      let next = at.branches.get(name);
      if (!next) {
        next = branch(at.name ? `${at.name}${sign}${name}` : name);
        at.branches.set(name, next);
        at.children.push(next);
      }
      at = next;
    }
    at.children.push(step);
  });
  return root;
}

/** The tree of groups over steps in the order they run. */
export function groupTree(p: Profile, steps: number[]): Group {
  let id = 0;
  const make = (name: string, parent: Group | null): Group => ({ id: id++, name, parent, children: [], steps: [] });
  // Depth is bounded by DEEPEST and one level of runs.
  const grow = (from: Branch, parent: Group | null): Group => {
    let at = from;
    while (at.children.length === 1 && typeof at.children[0] !== "number") at = at.children[0]; // a box with one box in it
    const group = make(at.name, parent);
    for (const child of at.children) {
      const grown = typeof child === "number" ? child : grow(child, group);
      group.children.push(isGroup(grown) && grown.steps.length === 1 ? grown.steps[0] : grown);
    }
    for (const child of group.children) {
      if (isGroup(child)) for (const step of child.steps) group.steps.push(step);
      else group.steps.push(child);
    }
    if (group.children.length > MANY) cut(group);
    return group;
  };
  const cut = (group: Group): void => {
    const all = group.children;
    group.children = [];
    for (let i = 0; i < all.length; i += RUN) {
      const run = make("", group);
      run.children = all.slice(i, i + RUN);
      for (const child of run.children) {
        if (isGroup(child)) {
          child.parent = run;
          for (const step of child.steps) run.steps.push(step);
        } else run.steps.push(child);
      }
      const places = run.steps.filter((i) => !p.steps[i].folded).map((i) => p.steps[i].index); // what is folded has none
      run.name = places.length ? `steps ${places[0]} to ${places[places.length - 1]}` : "folded steps";
      group.children.push(run);
    }
  };
  return grow(branchesOf(p, steps), null);
}

/** Every group of a tree but its root. */
export function groupsOf(root: Group): Group[] {
  const all: Group[] = [];
  const stack = [root];
  while (stack.length) {
    for (const child of (stack.pop() as Group).children) {
      if (!isGroup(child)) continue;
      all.push(child);
      stack.push(child);
    }
  }
  return all;
}

/** The groups that are open at first: all of a graph that is not large; of a large one so many that there is something to see. */
export function openAtFirst(root: Group): Set<number> {
  if (root.steps.length <= LARGE) return new Set(groupsOf(root).map((g) => g.id));
  const open = new Set<number>();
  const shown = [...root.children];
  for (;;) {
    const groups = shown.filter(isGroup);
    const largest = groups.reduce<Group | null>((a, b) => (a && a.steps.length >= b.steps.length ? a : b), null);
    if (!largest || (groups.length > 1 && shown.length > FEW) || shown.length + largest.children.length > LARGE) return open;
    open.add(largest.id);
    shown.splice(shown.indexOf(largest), 1, ...largest.children);
  }
}

/** By step: the groups around it, the innermost first. */
export function groupsAround(root: Group, step: number): Group[] {
  const around: Group[] = [];
  let at: Group | undefined = root;
  while (at) {
    if (at !== root) around.unshift(at);
    at = at.children.filter(isGroup).find((g) => g.steps.includes(step));
  }
  return around;
}
