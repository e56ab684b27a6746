#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages docs/adding-*.md are true: what they have a reader write compiles, links and passes the page's own test.

A page names each file before its code ("`src/export/wall.c`, …" and a block), and each list before the rows that go into
it ("In `src/export/exporters.inc`" and a block of rows). These files are compiled with the commands of the build for
files of the same folder, warnings as errors included; the lists with the new rows lie in a folder of their own that is
searched first, so that the tree stays as it is. Then the page's tests are run.

usage: test_samples.py BUILD_DIR
"""

import json
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1]).resolve()
COMMANDS = json.loads((BUILD / "compile_commands.json").read_text())
INSTRUCTIONS = re.compile(r"_(avx2|avx512|neon)\.c$")


def blocks_behind(text, name):
    """{path: code} of the blocks whose last path before them matches `name`."""
    found, end = {}, 0
    for block in re.finditer(r"^( *)```(\w+)\n(.*?)^ *```$", text, re.S | re.M):
        paths = re.findall(r"`((?:src|tests)/[\w/]+\.\w+)`", text[end:block.start()])
        if paths and block.group(2) == "c" and re.fullmatch(name, paths[-1]):
            found[paths[-1]] = re.sub(rf"(?m)^{block.group(1)}", "", block.group(3))
        end = block.end()
    return found


def instructions(path):
    match = INSTRUCTIONS.search(path)
    return match and match.group(1)


def flags_for(path):
    """The compiler and its flags for an existing file of the same folder and instruction set."""
    folder = (ROOT / path).parent
    if not folder.exists():  # a new one: the flags are those of its room
        folder = folder.parent
    for command in COMMANDS:
        other = Path(command["file"]).resolve()
        if other.parent == folder and instructions(other.name) == instructions(path):
            words = shlex.split(command["command"]) if "command" in command else list(command["arguments"])
            named = {i + 1 for i, word in enumerate(words) if word in ("-o", "-c", "-MT", "-MF")}
            return [word for i, word in enumerate(words) if i not in named and word not in ("-o", "-c", "-MT", "-MF", "-MD")]
    raise AssertionError(f"the build has no file beside {path}")


class Samples(unittest.TestCase):
    def execute(self, command, what, **options):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
        self.assertEqual(done.returncode, 0, f"{what}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def build_page(self, page, tables, rooms, first=(), tests=()):
        """`tables`: the sources that expand the lists. `rooms`: libraries, from the top. `first`: lists whose new rows
        go before the others. `tests`: tests of the tree to run with the new rows, beside the page's own."""
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        files = blocks_behind(text, r"(?:src|tests)/[\w/]+\.c")
        lists = blocks_behind(text, r"src/[\w/]+\.inc")
        self.assertTrue(files and lists, page)
        with tempfile.TemporaryDirectory() as folder:
            new = Path(folder)
            for path, rows in lists.items():
                old = (ROOT / path).read_text(encoding="utf-8")
                at = re.search(r"^SN_", old, re.M).start() if path in first else len(old)
                made = new / Path(path).relative_to("src")
                made.parent.mkdir(parents=True, exist_ok=True)
                made.write_text(old[:at] + rows + old[at:], encoding="utf-8")
            for path, code in blocks_behind(text, r"src/[\w/]+\.h").items():
                self.assertFalse((ROOT / path).exists(), f"{page} has its reader write {path}, which exists")
                made = new / Path(path).relative_to("src")
                made.parent.mkdir(parents=True, exist_ok=True)
                made.write_text(code, encoding="utf-8")
            sources = {path: ROOT / path for path in tables}
            for path, code in files.items():
                if instructions(path) in ("avx2", "avx512") and platform.machine() not in ("x86_64", "AMD64"):
                    continue
                self.assertFalse((ROOT / path).exists(), f"{page} has its reader write {path}, which exists")
                sources[path] = new / path.replace("/", "_")
                sources[path].write_text(code, encoding="utf-8")
            objects = {path: self.compile(new, path, source, page) for path, source in sources.items()}
            test_files = [path for path in files if path.startswith("tests/")]
            for path in tests:
                objects[path] = self.compile(new, path, ROOT / path, page)
            shared = [made for path, made in objects.items() if not path.startswith("tests/")]
            self.assertTrue(test_files or tests, page)
            for path in [*test_files, *tests]:
                program = new / "program"
                archives = [BUILD / f"libsn_{room}.a" for room in rooms]
                link = [*flags_for(path), "-o", program, objects[path], *shared]
                self.execute([*link, *archives, "-pthread", "-lm"], f"{page}: linking {path}")
                said = self.execute([program], f"{page}: {path}", cwd=new)
                self.assertRegex(said, r"[1-9]\d* passed, 0 failed", f"{page}: {path}")

    def compile(self, new, path, source, page):
        made = new / (path.replace("/", "_") + ".o")
        command = flags_for(path)
        first = next(i for i, word in enumerate(command) if word.startswith("-"))
        command[first:first] = [f"-I{new}", f"-I{(ROOT / path).parent}"] if path.startswith("tests/") else [f"-I{new}"]
        self.execute([*command, "-o", made, "-c", source], f"{page}: {path}")
        return made

    def test_an_operator(self):
        self.build_page("adding-an-operator.md", ["src/ops/ops.c"], ["ops", "compute", "kernels", "graph", "base"])

    def test_a_pass(self):
        self.build_page("adding-a-pass.md", ["src/passes/pass.c"],
                        ["passes", "ops", "compute", "kernels", "graph", "base"], first=["src/passes/passes.inc"])

    def test_an_exporter(self):
        self.build_page("adding-an-exporter.md", ["src/export/exporters.c"], ["export", "profile", "base"])

    def test_a_model_reader(self):
        self.build_page("adding-a-model-reader.md", ["src/model_readers/model_readers.c"],
                        ["model_readers", "onnx", "graph", "base"], first=["src/model_readers/model_readers.inc"],
                        tests=["tests/model_readers/test_list.c"])

    def test_a_kernel(self):
        self.build_page("adding-a-kernel.md", ["src/kernels/kernels.c"], ["kernels", "base"],
                        tests=["tests/kernels/test_eltwise.c", "tests/kernels/test_list.c"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
