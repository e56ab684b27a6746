#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the law of the rooms on what files call, not only on what they include.

An #include shows what a file may know; its object file shows what it uses. The law is that of
check_includes.py, the table between the law markers of docs/architecture.md. Here each symbol that one
object file leaves undefined and another one defines is an arrow from file to file, and
  - an arrow from room to room, or from folder to folder of a room whose folders have rows, must be granted
    by the table;
  - no files may use each other in a circle, within a room or across rooms, unless an arrow of the circle
    stands in the table of named arrows on the same page, with its reason; a named arrow that does not
    exist (any more) is a mistake, too.

usage: check_calls.py BUILD [ROOT] [--nm PROGRAM]   BUILD: a build folder with the objects of the library
       check_calls.py BUILD [ROOT] --graph          prints the arrows between rooms with their counts, and no verdict

The exit status is 1 when the law is broken, and 77 when nm cannot read the objects (link-time optimisation keeps
the compiler's own format in them): then nothing was checked, and ctest shows the test as skipped.
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_includes import is_include, read_law, read_named, row_of  # noqa: E402

SHOWN = 30  # arrows of one circle
SKIPPED = 77


def source_of(path):
    """build/…/sn_base_objects.dir/src/base/map.c.o ► base/map.c"""
    text = path.as_posix()
    return text[text.rindex("/src/") + 5 : -2]


class Unreadable(Exception):
    """nm does not understand the objects; its text says why."""


def list_symbols(nm, objects):
    """What nm prints; the plugin that some versions of nm need for link-time optimisation may be missing."""
    try:
        done = subprocess.run([nm, "-A", "-P", *map(str, objects)], capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unreadable(f"{nm} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise Unreadable(done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"{nm} failed")
    if "__gnu_lto_slim" in done.stdout:
        raise Unreadable("the objects were compiled for link-time optimisation")
    return done.stdout


def read_objects(nm, build, root):
    """Which file defines each symbol, and which symbols each file uses. Objects of files that were moved stay
    in a build folder and do not count."""
    objects = [o for o in sorted(build.glob("CMakeFiles/sn_*_objects.dir/src/**/*.c.o"))
               if (root / "src" / source_of(o)).exists()]
    if not objects:
        raise SystemExit(f"{build} has no objects of the library; build it first")
    defines, uses = {}, defaultdict(set)
    for line in list_symbols(nm, objects).splitlines():
        where, _, rest = line.partition(": ")
        symbol, kind = rest.split()[:2]
        if kind == "U":
            uses[source_of(Path(where))].add(symbol)
        elif kind.isupper():
            defines[symbol] = source_of(Path(where))
    return defines, uses


def arrows_of(defines, uses):
    """{(file, file): symbols}"""
    arrows = defaultdict(set)
    for user, symbols in uses.items():
        for symbol in symbols:
            if defines.get(symbol, user) != user:
                arrows[user, defines[symbol]].add(symbol)
    return arrows


def circles(arrows):
    """Groups of files that reach each other (Tarjan), without recursion: files may be many."""
    after = defaultdict(list)
    for a, b in arrows:
        after[a].append(b)
    index, low, stack, on, found, count = {}, {}, [], set(), [], 0
    for root in sorted(after):
        if root in index:
            continue
        work = [(root, iter(after[root]))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on.discard(group[-1])
                    if len(group) > 1:
                        found.append(sorted(group))
            elif following not in index:
                index[following] = low[following] = count
                count += 1
                stack.append(following)
                on.add(following)
                work.append((following, iter(after[following])))
            elif following in on:
                low[node] = min(low[node], index[following])
    return found


def check(law, named, arrows):
    problems = []
    for (a, b), symbols in sorted(arrows.items()):
        here, there = row_of(a, law), row_of(b, law)
        allowed = law.get(here, set())
        if here == there or (a, b) in named:
            continue
        if there not in allowed and there.split("/")[0] not in allowed and b[:-1] + "h" not in allowed:
            problems.append(f"{a} uses {', '.join(sorted(symbols)[:3])} of {b}, but {here} may use "
                            + (", ".join(sorted(allowed)) or "nothing else"))
    for a, b in named:
        if (a, b) not in arrows:
            problems.append(f"docs/architecture.md names an arrow from {a} to {b}, but there is none")
    free = {arrow: symbols for arrow, symbols in arrows.items() if arrow not in named}
    for group in circles(free):
        members = set(group)
        problems.append(f"{len(group)} files use each other in a circle:")
        inside = [(a, b) for a, b in sorted(free) if a in members and b in members]
        for a, b in inside[:SHOWN]:
            problems.append(f"    {a} ► {b}: {', '.join(sorted(free[a, b])[:3])}")
        if len(inside) > SHOWN:
            problems.append(f"    … and {len(inside) - SHOWN} more arrows")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("root", type=Path, nargs="?", default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--graph", action="store_true")
    options = parser.parse_args()
    page = (options.root / "docs" / "architecture.md").read_text(encoding="utf-8")
    law = read_law(page)
    named = {arrow: reason for arrow, reason in read_named(page).items() if not is_include(arrow)}
    try:
        arrows = arrows_of(*read_objects(options.nm, options.build.resolve(), options.root))
    except Unreadable as reason:
        print(f"not checked, the objects cannot be read: {reason}")
        print("0 passed, 0 failed, 1 skipped")
        return SKIPPED
    if options.graph:
        rooms = defaultdict(int)
        for a, b in arrows:
            if row_of(a, law) != row_of(b, law):
                rooms[row_of(a, law), row_of(b, law)] += 1
        for (a, b), n in sorted(rooms.items()):
            print(f"{a} ► {b}: {n}")
        return 0
    problems = check(law, named, arrows)
    for problem in problems:
        print(problem)
    count = sum(not problem.startswith(" ") for problem in problems)
    print(f"{len(arrows)} arrows between files, {len(named)} named ones, {count} violations of the law")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
