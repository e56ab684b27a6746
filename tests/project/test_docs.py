#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages say what is true: links and paths lead somewhere, whole C files in them compile, commands,
options, passes, formats and tests they name exist.

usage: test_docs.py BUILD_DIR COMPILER
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script"))
from check_includes import read_law  # noqa: E402

BUILD, COMPILER = Path(sys.argv[1]), sys.argv[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/*/README.md")])
FOLDERS = "src|docs|tests|script|include|bench|examples|tools|cmake|web|python"
# The kinds of work that a benchmark of kernels must show.
CLASSES = {"batch", "conv1d", "conv1d_long", "conv3d", "multiplier", "narrow_groups", "dilated", "transposed", "pool",
           "windows", "tokens", "folded", "epilogue", "small_products", "one_row", "recurrent", "small_steps"}
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes -Werror".split()


def blocks(page, language):
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", page.read_text(), re.S | re.M)


def prose(page):
    """A page without its blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.S | re.M)


def words_of(*folders):
    """Every word of the sources in these folders."""
    files = [f for folder in folders for f in (ROOT / folder).rglob("*") if f.suffix in (".c", ".h", ".inc")]
    return set(re.findall(r"\w+", "".join(f.read_text() for f in files)))


def sonde(*arguments):
    """Standard output of the program that was built."""
    return subprocess.run([BUILD / "sonde", *arguments], capture_output=True, text=True, check=True).stdout


def name(page):
    return str(page.relative_to(ROOT))


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{name(page)}: {target}")

    def test_paths_exist(self):
        for page in PAGES:
            text = prose(page)
            for path in re.findall(rf"`((?:{FOLDERS})/[\w./*+-]*)`", text):
                found = list(ROOT.glob(path.rstrip("/"))) or list((page.parent).glob(path.rstrip("/")))
                new = f"`{path}`, a" in text  # "`src/export/wall.c`, an exporter that …": to be made
                self.assertTrue(found or new, f"{name(page)}: {path}")

    def test_names_exist(self):
        """Functions, types and constants that pages name; NAME, thing and my_ stand for what a reader writes."""
        known = words_of("src", "include", "tests")
        for page in PAGES:
            if page.name == "CHANGELOG.md":  # of what was, too
                continue
            for word in set(re.findall(r"\b(?:sn|SN)_\w+", prose(page))):
                self.assertTrue(word in known or re.search("NAME|thing|my_", word), f"{name(page)}: {word}")

    def test_the_way_from_a_command_to_a_file_goes_down(self):
        """Each function of a row is of the room behind it, and each room may use the next one."""
        page = (ROOT / "docs/architecture.md").read_text()
        law = read_law(page)
        rows = re.findall(r"^\| [\w …]+ \| (`sonde_\w+` \(api\) ►.*) \|$", page, re.M)
        self.assertGreaterEqual(len(rows), 7)
        for row in rows:
            way = re.findall(r"`([\w>-]+)` \((\w+)", row)
            for function, room in way:
                if "->" not in function:
                    self.assertIn(function, words_of(f"src/{room}"), row)
            for (_, above), (_, below) in zip(way, way[1:]):
                granted = {word.split("/")[0] for word in law[above]}
                self.assertIn(below, granted, f"{above} ► {below}: {row}")

    def test_whole_files_compile(self):
        compiled = 0
        for page in PAGES:
            if page.name.startswith("adding-"):  # test_samples.py builds and runs those
                continue
            for block in blocks(page, "c"):
                if "SPDX" not in block and "int main(" not in block:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    source = Path(folder) / "example.c"
                    source.write_text(block)
                    command = [COMPILER, "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", *WARNINGS]
                    command += [f"-I{ROOT}/src", f"-I{ROOT}/include", str(source)]
                    done = subprocess.run(command, capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, f"{name(page)}:\n{done.stderr}")
                    compiled += 1
        self.assertGreaterEqual(compiled, 1)

    def test_list_rows_are_rows(self):
        """A block that is one row of a list looks like the rows of the list named before it."""
        seen = 0
        for page in PAGES:
            text = page.read_text()
            for path, row in re.findall(r"`(src/\S+?\.inc)`[^`]*?```c\n(SN_\w+)\([^\n]*\)\n *```", text):
                self.assertRegex((ROOT / path).read_text(), rf"(?m)^{row}\(", f"{name(page)}: {path}")
                seen += 1
        self.assertGreaterEqual(seen, 3)

    def test_commands_are_those_of_the_program(self):
        listed = set(re.findall(r"^\| `sonde (\w+)", (ROOT / "README.md").read_text(), re.M))
        verbs = sonde("--help").split("Verbs:")[1].split("\n\n")[0]
        self.assertEqual(listed, set(re.findall(r"^  (\w+)", verbs, re.M)))

    def test_options_exist(self):
        verbs = re.findall(r"^\| `sonde (\w+)", (ROOT / "README.md").read_text(), re.M)
        known = set().union(*(re.findall(r"--[a-z][a-z-]+", sonde(v, "--help")) for v in verbs))
        for program in ("bench/models.py", "bench/sweep.py", "bench/kernels/main.c", "examples/fastapi_service.py",
                        "examples/load_test.py"):
            known.update(re.findall(r"--[a-z][a-z-]+", (ROOT / program).read_text()))
        for page in PAGES:
            for line in re.findall(r"`((?:sonde \w+ [^`]*)?--[^`]*)`", page.read_text()):
                for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", line):
                    if not re.match(r"(cmake|ctest|script|git|valgrind)", line) and option not in (
                        "--full", "--preset"):
                        self.assertIn(option, known, name(page))

    def test_classes_of_work_have_lines_in_the_kernel_benchmark(self):
        section = (ROOT / "docs/benchmarking.md").read_text().split("| class | lines |")[1].split("\n\n")[0]
        classes = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.M))
        bench = [BUILD / "sonde_bench_kernels", "--list"]
        listed = [line.split() for line in subprocess.run(bench, capture_output=True, text=True, check=True).stdout.splitlines()]
        self.assertEqual(set(classes), {words[1] for words in listed if len(words) > 1})
        self.assertEqual(set(classes), CLASSES)
        for word, lines in classes.items():
            shown = subprocess.run([*bench, word], capture_output=True, text=True, check=True).stdout.split()
            for line in re.findall(r"`(.*?)`", lines):
                self.assertIn(line, shown, word)

    def test_formats_are_listed(self):
        formats = re.search(r"^Formats: (.*)$", sonde("profile", "--help"), re.M).group(1).split(", ")
        page = (ROOT / "docs/profiling.md").read_text()
        self.assertEqual(sorted(re.findall(r"^\| `(\.[a-z.]+)` \|", page, re.M)), sorted(formats))

    def test_categories_are_listed(self):
        categories = re.search(r"^Categories: (.*)$", sonde("profile", "--help"), re.M).group(1).split(", ")
        sentence = re.search(r"Every span has a category \(`cat`\):(.*?)\.", (ROOT / "docs/profiling.md").read_text(), re.S)
        self.assertEqual(re.findall(r"`(\w+)`", sentence.group(1)), categories)

    def test_build_commands_name_what_exists(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        presets = {preset["name"] for preset in presets}
        tests = subprocess.run(["ctest", "--test-dir", str(BUILD), "-N"], capture_output=True, text=True).stdout
        tests = re.findall(r"Test +#\d+: (\S+)", tests)
        self.assertTrue(tests)
        for page in PAGES:
            for line in "".join(blocks(page, "sh")).splitlines():
                for preset in re.findall(r"--preset (\S+)", line):
                    self.assertIn(preset, presets, name(page))
                for target in re.findall(r"--target (\S+)", line):
                    self.assertIn(target, tests, name(page))
                for pattern in re.findall(r"ctest .*-R (\S+)", line):
                    self.assertTrue([t for t in tests if re.search(pattern, t)], f"{name(page)}: {line}")
                for script in re.findall(r"^script/\w+", line):
                    self.assertTrue((ROOT / script).exists(), f"{name(page)}: {line}")

    def test_variables_are_read_somewhere(self):
        """Every SONDE_… variable of the pages is one the sources or the scripts know."""
        sources = [*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("tools/**/*.c"), *ROOT.glob("include/**/*.h")]
        sources += [*ROOT.glob("tests/**/*.[ch]"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("script/*")]
        sources += [*ROOT.glob("**/CMakeLists.txt"), *ROOT.glob("cmake/*")]
        text = "".join(s.read_text() for s in sources if s.is_file() and "build" not in s.parts[len(ROOT.parts):][:1])
        for page in PAGES:
            for variable in set(re.findall(r"\bSONDE_[A-Z0-9_]+\b", page.read_text())):
                self.assertIn(variable, text, name(page))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
