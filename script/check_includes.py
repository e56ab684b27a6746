#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the include law.

The law is the table between the law markers of docs/architecture.md: which room may include which.
A row may also be a folder of a room (`ops/shared`): then all folders of that room have rows, and their files
follow those rows instead of the room's.
Checked: every #include of a room's file in src/, tools/, python/ and include/; that the table's rooms are the
folders of src/; that a row grants only rows above it, so that no rooms can need each other in a circle; and that
CMakeLists.txt links the rooms as the table says. An include that the table does not grant may stand in the table of
named arrows on the same page, with its reason; one that does not exist (any more) is a mistake, too.

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


def read_named(page):
    """{(from, to): reason} of the table of named arrows."""
    match = re.search(r"<!-- arrows:begin -->(.*?)<!-- arrows:end -->", page, re.S)
    named = {}
    for line in match.group(1).splitlines() if match else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and cells[0] != "from" and not set(cells[0]) <= set("-: "):
            named[cells[0].strip("`"), cells[1].strip("`")] = cells[2]
    return named


def is_include(arrow):
    """Named arrows to a source are calls, which check_calls.py looks at."""
    return not arrow[1].endswith(".c")


def row_of(name, law):
    """The law's row for a file of src/: the longest one that its folder begins with."""
    parts = name.split("/")[:-1]
    while len(parts) > 1 and "/".join(parts) not in law:
        parts.pop()
    return "/".join(parts)


def check_order(law):
    """Rows stand from the bottom to the top."""
    problems, above = [], set()
    for room, allowed in law.items():
        for word in sorted(allowed):
            if not above & {word, word.split("/")[0]}:
                problems.append(f"docs/architecture.md: {room} may include {word}, which is no row above it")
        above.add(room)
    return problems


def check_folders(root, law, rooms):
    """The rows are the folders of src/, and of each room of which a folder is a row."""
    listed = {row for row in law if row.split("/")[0] in rooms or "/" not in row}
    there = set(rooms)
    for room in rooms & {row.split("/")[0] for row in listed if "/" in row}:
        there |= {f"{room}/{path.name}" for path in (root / "src" / room).iterdir() if path.is_dir()}
    problems = [f"docs/architecture.md: room {room} is not a folder of src/" for room in sorted(listed - there)]
    return problems + [f"docs/architecture.md: src/{room}/ is missing in the law" for room in sorted(there - listed)]


def room_of(path, root, law):
    """The law's row for a file: src/base/x.c is `base`, tools/sonde/x.c is `tools/sonde`."""
    name = path.relative_to(root)
    return row_of(name.relative_to("src").as_posix(), law) if name.parts[0] == "src" else "/".join(name.parts[:2])


def may_include(room, law, target, rooms):
    """None when the law allows it, otherwise the reason why not."""
    allowed, row = law.get(room, set()), row_of(target, law)
    folder = target.split("/")[0]
    if room == "include/sonde":
        return None if folder not in rooms else "public headers may include public headers only"
    if room in OUTSIDE:
        return None if folder not in rooms else f"{OUTSIDE[room]} may include sonde/ only"
    if target == SHARED or row == room:
        return None
    if folder == "sonde" and PUBLIC in allowed:
        return None
    if folder == "sonde":
        return f"{room} may not include the public API; {SHARED} is for all"
    if folder not in rooms or allowed & {folder, row, target}:
        return None
    return f"{room} may include " + (", ".join(sorted(allowed)) or "libc only")


def check_sources(root, law, named, rooms):
    problems, used = [], set()
    for top in ("src", "tools", "include", "python"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCE_SUFFIXES or not path.is_file():
                continue
            room = room_of(path, root, law)
            name = path.relative_to(root / "src").as_posix() if top == "src" else None
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
                reason = may_include(room, law, target, rooms)
                if reason and (name, target) in named:
                    used.add((name, target))
                elif reason:
                    problems.append(f'{where}: includes "{target}", but {reason}')
    for a, b in named:
        if is_include((a, b)) and (a, b) not in used:
            problems.append(f"docs/architecture.md names an arrow from {a} to {b}, but that needs none")
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
        want = {word.split("/")[0] for word in allowed if word != PUBLIC} - {name}
        if set(links) != want:
            problems.append(f"CMakeLists.txt: sonde_room({name}) links {sorted(links)}, the law says {sorted(want)}")
    if text:
        problems += [f"CMakeLists.txt: no sonde_room({name})" for name in sorted(rooms - seen)]
    return problems


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    law = read_law(page)
    rooms = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    problems = check_folders(root, law, rooms)
    problems += check_order(law)
    problems += check_sources(root, law, read_named(page), rooms)
    problems += check_cmake(root, law, rooms)
    for problem in problems:
        print(problem)
    print(f"{len(rooms)} rooms, {len(problems)} violations of the include law")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
