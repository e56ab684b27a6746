#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the include law.

The law is the table between the law markers of docs/architecture.md: which room may include which.
Checked: every #include of a room's file in src/, tools/, python/ and include/; that the table's rooms are the
folders of src/; that a row grants only rows above it, so that no rooms can need each other in a circle; and that
CMakeLists.txt links the rooms as the table says.

usage: check_includes.py [ROOT]     (default: the folder above this script)
"""

import re
import sys
from pathlib import Path

SOURCE_SUFFIXES = {".c", ".h", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
# The words that every room shares.
SHARED = "sonde/types.h"
PUBLIC = "include/sonde"
# Who is a user of the library like any other.
OUTSIDE = {"tools/sonde": "the program", "python/src": "the Python extension"}


def read_law(page):
    """{room: set of rooms or single files it may include}."""
    match = re.search(r"<!-- law:begin -->(.*?)<!-- law:end -->", page, re.S)
    if not match:
        raise SystemExit("docs/architecture.md has no table between the law markers")
    law = {}
    for line in match.group(1).splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if len(cells) < 2 or cells[0] in ("room", "") or set(cells[0]) <= set("-: "):
            continue
        allowed = cells[-1].replace("`", "")
        if allowed in ("libc", "itself"):
            law[cells[0]] = set()
        else:
            law[cells[0]] = {word.strip() for word in allowed.split(",")}
    return law


def check_order(law):
    """Rows stand from the bottom to the top."""
    problems, above = [], set()
    for room, allowed in law.items():
        for word in sorted(allowed):
            if not above & {word, word.split("/")[0]}:
                problems.append(f"docs/architecture.md: {room} may include {word}, which is no row above it")
        above.add(room)
    return problems


def room_of(path, root):
    """The law's row for a file: src/base/x.c is `base`, tools/sonde/x.c is `tools/sonde`."""
    parts = path.relative_to(root).parts
    return parts[1] if parts[0] == "src" else "/".join(parts[:2])


def may_include(room, allowed, target, rooms):
    """None when the law allows it, otherwise the reason why not."""
    folder = target.split("/")[0]
    if room == "include/sonde":
        return None if folder not in rooms else "public headers may include public headers only"
    if room in OUTSIDE:
        return None if folder not in rooms else f"{OUTSIDE[room]} may include sonde/ only"
    if target == SHARED or folder == room:
        return None
    if folder == "sonde" and PUBLIC in allowed:
        return None
    if folder == "sonde":
        return f"{room} may not include the public API; {SHARED} is for all"
    if folder not in rooms or folder in allowed or target in allowed:
        return None
    return f"{room} may include " + (", ".join(sorted(allowed)) or "libc only")


def check_sources(root, law, rooms):
    problems = []
    for top in ("src", "tools", "include", "python"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCE_SUFFIXES or not path.is_file():
                continue
            room = room_of(path, root)
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                where = f"{path.relative_to(root)}:{number}"
                quote, target = match.groups()
                if quote == '"' and "/" not in target and top == "src":
                    problems.append(f'{where}: write "{room}/{target}", not "{target}"')
                    continue
                if ".." in target.split("/"):
                    problems.append(f'{where}: "{target}" leaves its room')
                    continue
                reason = may_include(room, law.get(room, set()), target, rooms)
                if reason:
                    problems.append(f'{where}: includes "{target}", but {reason}')
    return problems


def check_cmake(root, law, rooms):
    """sonde_room(NAME ROOM…) in CMakeLists.txt must name the rooms of the table."""
    problems, seen = [], set()
    cmake = root / "CMakeLists.txt"
    text = cmake.read_text(encoding="utf-8") if cmake.exists() else ""
    for match in re.finditer(r"^sonde_room\(([^)]*)\)", text, re.M):
        name, *links = match.group(1).split()
        seen.add(name)
        allowed = law.get(name, set())
        want = {word.split("/")[0] for word in allowed if word != PUBLIC}
        if set(links) != want:
            problems.append(f"CMakeLists.txt: sonde_room({name}) links {sorted(links)}, the law says {sorted(want)}")
    if text:
        problems += [f"CMakeLists.txt: no sonde_room({name})" for name in sorted(rooms - seen)]
    return problems


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    law = read_law((root / "docs" / "architecture.md").read_text(encoding="utf-8"))
    rooms = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    listed = {room for room in law if "/" not in room}
    problems = [f"docs/architecture.md: room {room} is not a folder of src/" for room in sorted(listed - rooms)]
    problems += [f"docs/architecture.md: src/{room}/ is missing in the law" for room in sorted(rooms - listed)]
    problems += check_order(law)
    problems += check_sources(root, law, rooms)
    problems += check_cmake(root, law, rooms)
    for problem in problems:
        print(problem)
    print(f"{len(rooms)} rooms, {len(problems)} violations of the include law")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
