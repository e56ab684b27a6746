#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""script/test in parts: every suite, and every file of a suite that is divided, belongs to exactly one part.

usage: test_test_parts.py
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def suites(tier, part=None):
    """[(suite, its files)] as script/test lists them."""
    command = [ROOT / "script" / "test", *tier, "--list"] + (["--part", part] if part else [])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [(name, rest.split()) for name, _, rest in (line.partition(" ") for line in done.stdout.splitlines())]


def parts_are_complete(tier):
    whole = suites(tier)
    assert len(whole) >= 5 and len({name for name, _ in whole}) == len(whole), whole
    for n in range(1, 7):
        parts = [suites(tier, f"{k}/{n}") for k in range(1, n + 1)]
        assert sum(parts, []) == whole, f"{n} parts of script/test {tier} are not the whole"
        if tier and n == 6:
            assert all(parts), "a part has nothing to do"


def divided_suites_are_complete(tier):
    whole = suites(tier)
    for kind, pattern in (("python", "tests/python/**/test_*.py"), ("fuzz", "tests/fuzz/fuzz_*.c")):
        listed = [f for name, files in whole if re.fullmatch(kind + r"(-\d+of\d+)?", name) for f in files]
        found = sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(pattern))
        assert sorted(listed) == found, f"{kind}: {set(listed) ^ set(found)}"
    counts = {}
    for name, _ in whole:
        if match := re.fullmatch(r"(.*)-(\d+)of(\d+)", name):
            counts.setdefault((match[1], int(match[3])), []).append(int(match[2]))
    for (kind, n), found in counts.items():
        assert found == list(range(1, n + 1)), f"{kind}: {found} of {n}"


def wrong_parts_are_refused():
    for text in ("0/3", "4/3", "1", "1/0", "a/b", "1/2/3", ""):
        done = subprocess.run([ROOT / "script" / "test", "--list", "--part", text], capture_output=True, text=True)
        assert done.returncode == 2 and "usage" in done.stderr, text


def every_suite_is_run():
    """A name that no branch of the script knows would count as passed."""
    script = (ROOT / "script" / "test").read_text()
    run = script[script.index("run() {"):]
    patterns = re.findall(r"^  ([a-z][\w*-]*)\)", run, re.M)
    for name, _ in suites(["--full"]):
        assert any(re.fullmatch(p.replace("*", ".*"), name) for p in patterns), name


STUBS = {
    "script/setup": "exit 0",
    "bin/cmake": "exit 0",
    "bin/ctest": """[[ "$*" != *asan* ]] || { echo '60% tests passed, 2 tests failed out of 5'; exit 8; }
        echo '100% tests passed, 0 tests failed out of 5'""",
    "build/venv/bin/python": """case "$*" in
          *differential.py*) echo '2000 models, 0 failed' ;;
          *make_seeds*) mkdir -p build/fuzz/seeds ;;
          *) n=0; for f; do [[ $f != tests/python/test_* ]] || n=$((n + 1)); done; echo "$n passed in 1 s" ;;
        esac""",
    "tests/project/recorder_off.sh": "exit 0",
    "build/tsan/tests/test_api_stress": "exit 0",
    "build/asan/tests/test_api_stress": "exit 0",
    "build/fuzz/fuzz/fuzz_a": "echo 'stat::number_of_executed_units: 7'",
    "build/fuzz/fuzz/fuzz_b": "exit 1",
}


def numbers_of_parts_add_up():
    """The script with every tool replaced: two tests fail under ASan, and one of two fuzzers."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in STUBS.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/usr/bin/env bash\n{text}\n")
            path.chmod(0o755)
        shutil.copy(ROOT / "script" / "test", root / "script" / "test")
        for name in [*(f"tests/python/test_{c}.py" for c in "abcdefg"), "tests/fuzz/fuzz_a.c", "tests/fuzz/fuzz_b.c"]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()

        def run(*options):
            done = subprocess.run(["bash", root / "script" / "test", *options], capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"})
            counts = re.fullmatch(r"(\d+) passed, (\d+) failed", (done.stdout.splitlines() or [""])[-1])
            assert counts, done.stdout + done.stderr
            assert done.returncode == (int(counts[2]) > 0), done.stdout
            return int(counts[1]), int(counts[2])

        for tier in ([], ["--full"]):
            whole = run(*tier)
            # Two unit tests under ASan and a fuzzer fail.
            assert whole[1] == 3 and whole[0] > 20, whole
            for n in (2, 4, 6):
                parts = [run(*tier, "--part", f"{k}/{n}") for k in range(1, n + 1)]
                assert tuple(map(sum, zip(*parts))) == whole, (tier, n, parts, whole)


def main():
    numbers_of_parts_add_up()
    for tier in ([], ["--full"]):
        parts_are_complete(tier)
        divided_suites_are_complete(tier)
    wrong_parts_are_refused()
    every_suite_is_run()
    print("the parts are the whole")
    return 0


if __name__ == "__main__":
    sys.exit(main())
