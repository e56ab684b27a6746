# SPDX-License-Identifier: Apache-2.0
"""cmake/embed_report.cmake, with programs of its own in place of Node.js and npm: when the report page is built, and that
whatever is wrong with it costs the page only, not the library."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from patience import PATIENCE

SCRIPT = Path(__file__).resolve().parents[2] / "cmake" / "embed_report.cmake"
CMAKE = shutil.which("cmake")
pytestmark = pytest.mark.skipif(not CMAKE, reason="cmake is not installed")
NODE = """#!/bin/sh
echo built >>built.log
printf 'new page' >dist/report.html
"""
NPM = """#!/bin/sh
[ "$1" != ci ] || { mkdir -p node_modules && touch node_modules/.package-lock.json; }
"""
BROKEN = """#!/bin/sh
echo 'SyntaxError: this Node.js is too old' >&2
exit 1
"""


class Tree:
    """Sources of a page in a folder whose name has what shells and cmake could take for their own."""

    def __init__(self, folder):
        self.folder = folder / "a (folder) with spaces"
        (self.folder / "src").mkdir(parents=True)
        self.sources = [self.folder / name for name in ("src/main.ts", "build.mjs", "package.json", "package-lock.json")]
        for path in self.sources:
            path.write_text("")
            os.utime(path, (2e9, 2e9))
        self.output = folder / "page.c"
        self.program("node", NODE)
        self.program("npm", NPM)

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def page(self, text, when):
        (self.folder / "dist").mkdir()
        page = self.folder / "dist" / "report.html"
        page.write_text(text)
        os.utime(page, (when, when))

    def start(self, output=None, **options):
        given = {"FOLDER": self.folder, "PAGE": "", "NODE": self.folder / "node", "NPM": self.folder / "npm",
                 "SOURCES": ";".join(map(str, self.sources)), "OUTPUT": output or self.output, **options}
        return subprocess.Popen([CMAKE, *(f"-D{name}={value}" for name, value in given.items()), "-P", SCRIPT],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, **options):
        with self.start(**options) as process:
            said = process.communicate(timeout=PATIENCE)[0]
        return process.returncode, said

    def embedded(self, output=None):
        text = (output or self.output).read_text()
        data = bytes(int(byte, 16) for byte in re.findall("0x([0-9a-f]{2}),", text))
        assert f"sn_report_page_bytes = {len(data)};" in text
        return data.decode()

    def builds(self):
        log = self.folder / "built.log"
        return log.read_text().count("built") if log.exists() else 0


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_page_that_is_missing_or_old_is_built(tree):
    assert tree.run()[0] == 0 and tree.embedded() == "new page" and tree.builds() == 1
    assert (tree.folder / "node_modules" / ".package-lock.json").exists()


def test_a_page_that_is_newer_than_its_sources_is_used_as_it_is(tree):
    tree.page("old page", 2.1e9)
    assert tree.run()[0] == 0 and tree.embedded() == "old page" and tree.builds() == 0
    assert not (tree.folder / "dist" / "lock").exists()


def test_without_nodejs_the_page_that_is_there_is_used(tree):
    tree.page("old page", 1e9)
    code, said = tree.run(NODE="NODE-NOTFOUND")
    assert code == 0 and "no Node.js and npm" in said and tree.embedded() == "old page"


def test_without_nodejs_and_without_a_page_there_is_none(tree):
    code, _ = tree.run(NPM="NPM-NOTFOUND")
    assert code == 0 and tree.embedded() == ""


@pytest.mark.parametrize("broken", ["node", "npm"])
def test_a_build_that_fails_is_said_and_costs_the_page_only(tree, broken):
    tree.program(broken, BROKEN)
    tree.page("old page", 1e9)
    code, said = tree.run()
    assert code == 0 and "SyntaxError: this Node.js is too old" in said and tree.embedded() == "old page"


def test_sources_that_may_only_be_read_are_no_reason_to_fail(tree):
    (tree.folder / "dist").write_text("nothing can be written below a file, not even by root")
    code, said = tree.run()
    assert code == 0 and "nothing can be written to" in said and tree.embedded() == "" and tree.builds() == 0


def test_several_builds_at_once_make_one_page(tree, tmp_path):
    for path in tree.sources:
        os.utime(path, (1e9, 1e9))
    outputs = [tmp_path / f"page{i}.c" for i in range(4)]
    running = [tree.start(output) for output in outputs]
    for process in running:
        with process:
            process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert tree.builds() == 1 and {tree.embedded(output) for output in outputs} == {"new page"}


def test_a_page_that_was_named_must_be_there(tree, tmp_path):
    (tmp_path / "own.html").write_text("own page")
    assert tree.run(PAGE=tmp_path / "own.html")[0] == 0 and tree.embedded() == "own page" and tree.builds() == 0
    code, said = tree.run(PAGE=tmp_path / "missing.html")
    assert code != 0 and "SONDE_REPORT_PAGE" in said
