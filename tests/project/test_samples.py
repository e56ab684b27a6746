#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages docs/adding-*.md are true: what they have a reader write compiles, links and passes the page's own test.

A page names each file before its code ("`src/export/wall.c`, …" and a block), and each list before the rows that go into
it ("In `src/export/exporters.inc`" and a block of rows). These files are compiled with the commands of the build for
files of the same folder, warnings as errors included; the lists with the new rows lie in a folder of their own that is
searched first, so that the tree stays as it is. Then the page's tests are run. Options of an instruction set come from
the table of the build, with the rows that the page adds ("In `cmake/instruction_sets.cmake`" and a block).

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
INSTRUCTION_SETS = "cmake/instruction_sets.cmake"
MACHINE = "x86_64" if platform.machine() in ("x86_64", "AMD64") else "aarch64"


def instruction_sets(rows=""):
    """{suffix: (architecture, options)} of the table of the build, with more rows."""
    table = (ROOT / INSTRUCTION_SETS).read_text(encoding="utf-8")
    begin = re.search(r"^set\(SONDE_INSTRUCTION_SETS\n", table, re.M).end()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "table.cmake"
        show = 'foreach(row IN LISTS SONDE_INSTRUCTION_SETS)\n  message("row ${row}")\nendforeach()\n'
        script.write_text(table[:begin] + rows + table[begin:] + show, encoding="utf-8")
        said = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True).stderr
    found = [line.split() for line in re.findall(r"^row (.+)$", said, re.M)]
    return {suffix: (architecture, options) for suffix, architecture, *options in found}


SETS = instruction_sets()


def blocks_behind(text, name, language="c"):
    """{path: code} of the blocks whose last path before them matches `name`."""
    found, end = {}, 0
    for block in re.finditer(r"^( *)```(\w+)\n(.*?)^ *```$", text, re.S | re.M):
        paths = re.findall(r"`((?:src|tests|cmake)/[\w/]+\.\w+)`", text[end:block.start()])
        if paths and block.group(2) == language and re.fullmatch(name, paths[-1]):
            found[paths[-1]] = re.sub(rf"(?m)^{block.group(1)}", "", block.group(3))
        end = block.end()
    return found


def instructions(path, sets=SETS):
    """The instruction set that the file's suffix names, or None."""
    suffix = Path(path).stem.rpartition("_")[2]
    return suffix if suffix in sets and path.endswith(".c") else None


def flags_for(path, sets=SETS):
    """The compiler and its flags for a file of the same folder and instruction set; for an instruction set that is new
    they are those of a file without one, and the options of its row."""
    folder = (ROOT / path).parent
    if not folder.exists():  # a new one: the flags are those of its room
        folder = folder.parent
    wanted = instructions(path, sets) if path.startswith("src/") else None
    for plain in (False, True):
        for command in COMMANDS:
            other = Path(command["file"]).resolve()
            if other.parent == folder and instructions(other.name) == (None if plain else wanted):
                words = shlex.split(command["command"]) if "command" in command else list(command["arguments"])
                named = {i + 1 for i, word in enumerate(words) if word in ("-o", "-c", "-MT", "-MF")}
                words = [word for i, word in enumerate(words)
                         if i not in named and word not in ("-o", "-c", "-MT", "-MF", "-MD")]
                return [*words, *sets[wanted][1]] if plain and wanted else words
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
        new_sets = blocks_behind(text, re.escape(INSTRUCTION_SETS), "cmake").get(INSTRUCTION_SETS, "")
        self.sets = instruction_sets(new_sets) if new_sets else SETS
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
                needs = path.startswith("src/") and instructions(path, self.sets)
                if needs and self.sets[needs][0] != MACHINE:
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
                link = [*flags_for(path, self.sets), "-o", program, objects[path], *shared]
                # zlib, where the archives were built with it
                libraries = ["-lz"] if any(b"deflateInit2_" in archive.read_bytes() for archive in archives) else []
                self.execute([*link, *archives, *libraries, "-pthread", "-lm"], f"{page}: linking {path}")
                said = self.execute([program], f"{page}: {path}", cwd=new)
                self.assertRegex(said, r"[1-9]\d* passed, 0 failed", f"{page}: {path}")

    def compiler_knows(self, option):
        compiler = flags_for("src/kernels/kernels.c")
        first = next(i for i, word in enumerate(compiler) if word.startswith("-"))
        command = [*compiler[:first], option, "-fsyntax-only", "-x", "c", "/dev/null"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def compile(self, new, path, source, page):
        made = new / (path.replace("/", "_") + ".o")
        command = flags_for(path, self.sets)
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
        self.build_page("adding-an-exporter.md", ["src/export/exporters.c"],
                        ["export", "findings", "profile", "base"])

    def test_a_model_reader(self):
        self.build_page("adding-a-model-reader.md", ["src/model_readers/model_readers.c"],
                        ["model_readers", "onnx", "graph", "base"], first=["src/model_readers/model_readers.inc"],
                        tests=["tests/model_readers/test_list.c"])

    def test_a_kernel(self):
        self.build_page("adding-a-kernel.md", ["src/kernels/kernels.c"], ["kernels", "base"],
                        tests=["tests/kernels/test_eltwise.c", "tests/kernels/test_list.c"])

    def test_an_instruction_set(self):
        if MACHINE == "x86_64" and not self.compiler_knows("-mavx512fp16"):
            self.skipTest("the compiler does not know AVX512-FP16 (gcc 12 and clang 14 do)")
        self.build_page("adding-an-instruction-set.md", ["src/base/cpu.c", "src/kernels/kernels.c"], ["kernels", "base"],
                        tests=["tests/base/test_cpu.c", "tests/kernels/test_half.c", "tests/kernels/test_list.c"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
