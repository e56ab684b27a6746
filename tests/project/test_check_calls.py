#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checker of calls must see what it is there to see: each case is a small tree that is compiled, with one
mistake at most.

usage: test_check_calls.py COMPILER NM
"""

import subprocess
import sys
import tempfile
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "script" / "check_calls.py"
COMPILER, NM = sys.argv[1:3]
SKIPPED = 77
PAGE = """# x
<!-- law:begin -->
| room | may include |
| --- | --- |
| base | libc |
| kernels | base/cpu.h |
| graph | base |
| ops/low | base |
| ops/high | base, ops/low |
| ops | base, ops/high |
| api | base, graph, ops |
<!-- law:end -->
<!-- arrows:begin -->
| from | to | why |
| --- | --- | --- |
<!-- arrows:end -->
"""
GOOD = {
    "src/base/cpu.c": "int sn_cpu(void); int sn_cpu(void) { return 1; }",
    "src/base/pool.c": "int sn_cpu(void); int sn_pool(void); int sn_pool(void) { return sn_cpu(); }",
    "src/kernels/k.c": "int sn_cpu(void); int sn_k(void); int sn_k(void) { return sn_cpu(); }",
    "src/graph/g.c": "int sn_pool(void); int sn_g(void); int sn_g(void) { return sn_pool(); }",
    "src/graph/node.c": "extern const int sn_table[2]; const int sn_table[2] = {1, 2};",
    "src/ops/low/l.c": "int sn_l(void); int sn_l(void) { return 1; }",
    "src/ops/high/h.c": "int sn_l(void); int sn_h(void); int sn_h(void) { return sn_l(); }",
    "src/ops/list.c": "int sn_h(void); int sn_list(void); int sn_list(void) { return sn_h(); }",
    "src/api/p.c": "int sn_g(void); int sn_l(void); int sn_p(void); int sn_p(void) { return sn_g() + sn_l(); }",
    "docs/architecture.md": PAGE,
}
# Two files of the room graph that call each other.
CIRCLE = {
    "src/graph/g.c": "int sn_node(void); int sn_g(void); int sn_g(void) { return sn_node(); }",
    "src/graph/node.c": "int sn_g(void); int sn_node(void); int sn_node(void) { return sn_g(); }",
}


def naming(*arrows):
    rows = "".join(f"| `{a}` | `{b}` | a reason |\n" for a, b in arrows)
    return {"docs/architecture.md": PAGE.replace("| --- | --- | --- |\n", "| --- | --- | --- |\n" + rows)}


# name: (files changed, exit status, what the checker must say)
CASES = {
    "a lawful tree passes": ({}, 0, "0 violations"),
    "an arrow that the table does not grant is found": (
        {"src/base/pool.c": "int sn_g(void); int sn_pool(void); int sn_pool(void) { return sn_g(); }",
         "src/graph/g.c": "int sn_g(void); int sn_g(void) { return 1; }"},
        1, "base/pool.c uses sn_g of graph/g.c, but base may use nothing else"),
    "data of another room is an arrow too": (
        {"src/base/pool.c": "extern const int sn_table[2]; int sn_pool(void); int sn_pool(void) { return sn_table[1]; }"},
        1, "base/pool.c uses sn_table of graph/node.c"),
    "a single granted file does not open its room": (
        {"src/kernels/k.c": "int sn_pool(void); int sn_k(void); int sn_k(void) { return sn_pool(); }"},
        1, "kernels/k.c uses sn_pool of base/pool.c, but kernels may use base/cpu.h"),
    "an arrow between folders of a room that the table does not grant is found": (
        {"src/ops/low/l.c": "int sn_other(void); int sn_l(void); int sn_l(void) { return sn_other(); }",
         "src/ops/high/other.c": "int sn_other(void); int sn_other(void) { return 1; }"},
        1, "ops/low/l.c uses sn_other of ops/high/other.c, but ops/low may use base"),
    "a circle within a room is found": (CIRCLE, 1, "2 files use each other in a circle"),
    "a circle of three files is found": (
        {**CIRCLE,
         "src/graph/node.c": "int sn_edge(void); int sn_node(void); int sn_node(void) { return sn_edge(); }",
         "src/graph/edge.c": "int sn_g(void); int sn_edge(void); int sn_edge(void) { return sn_g(); }"},
        1, "3 files use each other in a circle"),
    "a function that calls itself is no circle": (
        {"src/graph/node.c": "int sn_node(int i); int sn_node(int i) { return i ? sn_node(i / 2) + i : 0; }"},
        0, "0 violations"),
    "a named arrow may close a circle": (
        {**CIRCLE, **naming(("graph/g.c", "graph/node.c"))}, 0, "1 named ones, 0 violations"),
    "a named arrow excuses no other circle": (
        {**CIRCLE, **naming(("graph/g.c", "base/pool.c"))}, 1, "2 files use each other in a circle"),
    "a named arrow that does not exist is found": (
        naming(("graph/g.c", "graph/node.c")), 1, "names an arrow from graph/g.c to graph/node.c, but there is none"),
    "a named include is not its business": (naming(("ops/low/l.h", "ops/list.inc")), 0, "0 named ones, 0 violations"),
}


def compile_tree(root, files):
    """Writes the tree and compiles its sources to where CMake would put them; ► the build folder."""
    build = root / "build"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
        if path.suffix == ".c":
            made = build / "CMakeFiles" / f"sn_{path.parent.name}_objects.dir" / (name + ".o")
            made.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([COMPILER, "-c", "-o", str(made), str(path)], check=True)
    return build


def run(root, build, *options):
    command = [sys.executable, str(CHECKER), str(build), str(root), "--nm", NM, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def expect(name, result, status, said):
    if result.returncode == status and said in result.stdout + result.stderr:
        return 0
    print(f"FAILED {name}: exit {result.returncode}, expected {status} and {said!r} in:\n{result.stdout}{result.stderr}")
    return 1


def check_folders():
    """What a build folder may look like: left-over objects, none at all, objects nobody can read."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        build = compile_tree(root, {**GOOD, **CIRCLE})
        (root / "src/graph/node.c").unlink()
        failed += expect("objects of files that are gone do not count", run(root, build), 0, "0 violations")
        failed += expect("the graph of rooms counts arrows", run(root, build, "--graph"), 0, "kernels ► base: 1")
        failed += expect("a build without objects is an error", run(root, root / "empty"), 1, "has no objects")
        (build / "CMakeFiles/sn_base_objects.dir/src/base/cpu.c.o").write_text("no object\n", encoding="utf-8")
        failed += expect("objects that cannot be read skip the check", run(root, build), SKIPPED, "1 skipped")
    return failed, 4


def main():
    failed, count = check_folders()
    for name, (files, status, said) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            failed += expect(name, run(root, compile_tree(root, {**GOOD, **files})), status, said)
        count += 1
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
