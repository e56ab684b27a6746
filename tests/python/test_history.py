# SPDX-License-Identifier: Apache-2.0
"""`--save` and `sonde history` where something stands in their way: full disks, places that cannot be written, files
that are something else. The profile itself is shown and saved in any case."""

import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import tempfile

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")


def sonde(folder, *arguments, **kw):
    environment = {**os.environ, "SONDE_MACHINE": "box", **kw.pop("env", {})}
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA", "SONDE_HISTORY"):
        environment.pop(name, None)
    return subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=PATIENCE, **kw)


def has_history():
    return PROGRAM and "keeps no history" not in sonde(None, "history", "--db", "/nowhere/x.db").stderr


pytestmark = pytest.mark.skipif(not has_history(), reason="SONDE_PROGRAM is not set, or has no SQLite")


def profile(folder, *arguments, **kw):
    return sonde(folder, "profile", "zoo:tiny_mlp", "-n", "20", "-t", "1", *arguments, **kw)


def entries(folder, db="h.db", *arguments):
    done = sonde(folder, "history", "--db", db, "--all", "--json", "-", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["entries"]


def check_shown(done, folder):
    """The profile is there; only the history is not."""
    assert done.returncode == 1 and "Graph run of" in done.stdout
    assert (folder / "p.pftrace").stat().st_size > 1000
    message = done.stderr.splitlines()[-1]
    assert message.startswith("sonde: the result is not in the history: ")
    return message


def small_files():
    """Files end after 40 kB, as on a disk that fills up: the profile fits, and the database does not."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))


def test_a_full_disk_costs_the_entry_and_nothing_else(tmp_path):
    assert profile(tmp_path, "--save=h.db", "--commit", "aaaa").returncode == 0
    for number in range(3):
        done = sonde(tmp_path, "profile", "zoo:tiny_mlp", "-n", "400", "-t", "1", "--level", "1", "-o", "p.pftrace",
                     "--save=h.db", preexec_fn=small_files)
        if done.returncode:
            break
    # What a small trace leaves room for is decided by its size; whatever happened, the first entry is whole.
    assert entries(tmp_path)[-1]["commit"] == "aaaa"
    assert sonde(tmp_path, "history", "show", "1", "--db", "h.db").returncode == 0
    check = sqlite3.connect(tmp_path / "h.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


def test_no_room_for_a_new_database(tmp_path):
    def tiny_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    done = profile(tmp_path, "--save=h.db", preexec_fn=tiny_files)
    assert done.returncode == 1 and "Graph run of" in done.stdout
    assert "not in the history" in done.stderr and "too large" in done.stderr.lower()
    assert profile(tmp_path, "--save=h.db").returncode == 0  # what is left there is no obstacle
    assert len(entries(tmp_path)) == 1


@pytest.mark.parametrize("db", ["no/such/folder/h.db", "file/h.db", "folder", "/dev/null", "text.db", "foreign.db"])
def test_places_that_are_no_database(tmp_path, db):
    (tmp_path / "file").write_text("x")
    (tmp_path / "text.db").write_text("text\n" * 1000)
    (tmp_path / "folder").mkdir()
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    foreign.close()
    before = {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    done = profile(tmp_path, f"--save={db}", "-o", "p.pftrace")
    check_shown(done, tmp_path)
    (tmp_path / "p.pftrace").unlink()
    assert {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    listed = sonde(tmp_path, "history", "--db", db)
    assert listed.returncode == 1 and len(listed.stderr.splitlines()) == 1


@pytest.fixture
def open_folder():
    """One that others may enter."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


def as_nobody(folder):
    """Arguments of subprocess for somebody without rights: root may write anywhere."""
    if os.geteuid():
        return {}
    for path in (*folder.parents, *pathlib.Path(PROGRAM).resolve().parents):
        if not path.stat().st_mode & 0o001:
            pytest.skip(f"others cannot enter {path}")
    return {"user": 65534, "group": 65534}


def test_a_read_only_folder(open_folder):
    tmp_path = open_folder
    nobody = as_nobody(tmp_path)
    assert profile(tmp_path, "--save=h.db").returncode == 0
    (tmp_path / "out").mkdir()
    os.chmod(tmp_path / "out", 0o777)
    os.chmod(tmp_path / "h.db", 0o444)
    os.chmod(tmp_path, 0o555)
    try:
        done = profile(tmp_path, "--save=h.db", "-o", "out/p.pftrace", **nobody)
        assert "read-only" in check_shown(done, tmp_path / "out")
        done = profile(tmp_path, "--save=new.db", "-o", "out/p.pftrace", **nobody)
        assert "the folder '.' cannot be written" in check_shown(done, tmp_path / "out")
        listed = sonde(tmp_path, "history", "--db", "h.db", **nobody)  # reading needs no rights
        assert listed.returncode == 0 and "zoo:tiny_mlp" in listed.stdout, listed.stderr
        assert sonde(tmp_path, "history", "show", "1", "--db", "h.db", **nobody).returncode == 0
    finally:
        os.chmod(tmp_path, 0o755)


def test_without_a_home(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_DATA_HOME", "SONDE_HISTORY")}
    done = subprocess.run([PROGRAM, "profile", "zoo:tiny_mlp", "-n", "5", "--save"], env=environment, cwd=tmp_path,
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and "HOME" in done.stderr and "Graph run of" in done.stdout


def test_programs_that_save_at_once(tmp_path):
    command = [PROGRAM, "profile", "zoo:tiny_mlp", "-n", "20", "-t", "1", "-q", "--save=h.db"]
    for _ in range(2):
        for running in [subprocess.Popen(command, cwd=tmp_path) for _ in range(6)]:
            assert running.wait(PATIENCE) == 0
    assert len(entries(tmp_path)) == 12
    assert len({e["series"] for e in entries(tmp_path)}) == 1


def test_odd_names_stay_on_their_line(tmp_path):
    name = b"a \"b\"\n\x1b[31m\xff'.onnx"
    saved = subprocess.run([PROGRAM, "zoo", "save", "tiny_mlp", name], cwd=tmp_path, capture_output=True)
    assert saved.returncode == 0
    done = sonde(tmp_path, "profile", os.fsdecode(name), "-n", "10", "-q", "--save=h.db", "--note", "n\n\x1b]0;x\x07")
    assert done.returncode == 0, done.stderr
    for verb in ([], ["trend"], ["show", "1"], ["diff", "1", "1"]):
        shown = sonde(tmp_path, "history", *verb, "--db", "h.db", errors="replace")
        assert shown.returncode == 0 and "\x1b" not in shown.stdout and "\x07" not in shown.stdout
    (entry,) = entries(tmp_path)
    assert entry["note"] == "n\n\x1b]0;x\x07" and entry["model"].startswith('a "b"\n')
    sonde(tmp_path, "history", "trend", "--db", "h.db", "-o", "t.svg")


def test_what_was_measured_is_part_of_the_options(tmp_path):
    for arguments in (["-s", "batch=2"], ["--precision", "bf16"], ["--no-optimize", "--disable-pass", "fuse-conv"],
                      ["--instances", "2"], ["--level", "1"], []):
        assert profile(tmp_path, "--save=h.db", "-q", *arguments).returncode == 0
    options = [e["options"] for e in reversed(entries(tmp_path))]
    assert len({e["series"] for e in entries(tmp_path)}) == 6
    assert options[0]["inputs"].endswith("f32[2, 16]") and options[5]["inputs"].endswith("f32[1, 16]")
    assert options[1]["precision"] == "bf16" and options[3]["instances"] == 2 and options[4]["level"] == 1
    assert options[2]["optimize"] is False and options[2]["disabled"] == ["fuse-conv"]
    assert len(entries(tmp_path, "h.db", "--options", "precision=bf16")) == 1


def test_a_limit_of_the_instruction_set_is_part_of_the_options(tmp_path, monkeypatch):
    bench = ["bench", "zoo:tiny_mlp", "-t", "1", "-n", "5", "--rounds", "1", "--no-program", "-q", "--save=h.db"]
    assert profile(tmp_path, "--save=h.db", "-q").returncode == 0
    assert profile(tmp_path, "--save=h.db", "-q", "--cpu", "baseline").returncode == 0
    assert sonde(tmp_path, *bench).returncode == 0
    monkeypatch.setenv("SONDE_CPU", "baseline")
    assert profile(tmp_path, "--save=h.db", "-q").returncode == 0
    assert sonde(tmp_path, *bench).returncode == 0
    found = entries(tmp_path)[::-1]
    assert [entry["options"].get("cpu") for entry in found] == [None, "baseline", None, "baseline", "baseline"]
    series = [entry["series"] for entry in found]
    assert series[1] == series[3] and len(set(series)) == 4


def test_what_a_bench_was_told_is_part_of_the_options(tmp_path):
    told = ([], ["--no-optimize"], ["--no-prepack"], ["--flush-denormals"], ["--cpu", "avx2"], ["--numa", "0"],
            ["--precision", "f16"], ["--disable-pass", "fuse-conv", "--disable-pass", "winograd"], ["--no-mmap"])
    for options in told:
        done = sonde(tmp_path, "bench", "zoo:tiny_mlp", "-t", "1", "-n", "5", "--rounds", "1", "--no-program", "--no-pin", "-q",
                     "--save=h.db", *options)
        assert done.returncode == 0, done.stderr
    found = entries(tmp_path)[::-1]
    usual = {"threads": 1, "batch": 1, "pinned": False}
    more = ({}, {"optimize": False}, {"prepack": False}, {"flush_denormals": True}, {"cpu": "avx2"}, {"numa": "0"},
            {"precision": "f16"}, {"disabled": ["fuse-conv", "winograd"]}, {})
    assert [entry["options"] for entry in found] == [{**usual, **one} for one in more]
    assert len({entry["series"] for entry in found}) == len(found) - 1  # mapping a file or not is alike
    assert len(entries(tmp_path, "h.db", "--options", "precision=f16")) == 1


def test_profiles_on_other_nodes_are_not_alike(tmp_path):
    root = tmp_path / "root"
    cpus = sorted(os.sched_getaffinity(0))[:1]
    for node in (0, 1):  # the same CPUs on either of two machines of two nodes
        for k, mine in enumerate((cpus, [9000]) if node == 0 else ([9000], cpus)):
            folder = root / f"sys/devices/system/node/node{k}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cpulist").write_text(",".join(map(str, mine)) + "\n")
        (root / "sys/devices/system/node/online").write_text("0-1\n")
        (root / "sys/devices/system/cpu").mkdir(parents=True, exist_ok=True)
        (root / "sys/devices/system/cpu/online").write_text(f"{cpus[0]},9000\n")
        done = profile(tmp_path, "-q", "--save=h.db", "--numa", node, env={"SONDE_SYSTEM_ROOT": str(root)})
        assert done.returncode == 0, done.stderr
    assert profile(tmp_path, "-q", "--save=h.db").returncode == 0
    assert [entry["options"].get("nodes") for entry in entries(tmp_path)] == [None, "1", "0"]


def test_one_entry_may_be_named_twice_and_days_exist(tmp_path):
    for _ in range(2):
        assert profile(tmp_path, "-q", "--save=h.db").returncode == 0
    assert sonde(tmp_path, "history", "--db", "h.db", "--since", "2026-02-30").returncode == 2
    done = sonde(tmp_path, "history", "rm", "--db", "h.db", "1", "#1", "@-1")
    assert done.returncode == 0 and done.stdout == "removed #1\n", done.stderr
    assert [entry["id"] for entry in entries(tmp_path)] == [2]


def test_a_regression_fails_the_job(tmp_path):
    """The database is filled with known times by hand: whoever measures has his own ways."""
    assert profile(tmp_path, "--save=h.db", "-q").returncode == 0
    db = sqlite3.connect(tmp_path / "h.db")
    columns = [c[1] for c in db.execute("PRAGMA table_info(entry)")]
    row = dict(zip(columns, db.execute("SELECT * FROM entry").fetchone()))
    for i in range(30):
        ns = (1.2e6 if i >= 20 else 1e6) * (1 + (i * 7 % 11 - 5) / 2000)
        new = {**row, "id": 100 + i, "at": row["at"] + 60000 * (i + 1), "median": ns, "low": ns * 0.999, "high": ns * 1.001,
               "code": f"abc{i:04d}"}
        db.execute(f"INSERT INTO entry ({', '.join(new)}) VALUES ({', '.join('?' * len(new))})", list(new.values()))
    db.execute("DELETE FROM entry WHERE id = 1")
    db.commit()
    db.close()
    done = sonde(tmp_path, "history", "trend", "--db", "h.db", "--fail-on-regression", "--json", "t.json")
    assert done.returncode == 3 and "is slower by 20.0 %" in done.stderr and "abc0020" in done.stderr
    trend = json.loads((tmp_path / "t.json").read_text())
    assert trend["failed"] and [level["from"] for level in trend["trends"][0]["levels"]] == [0, 20]
    assert "+20.0 %" in done.stdout and "from #120" in done.stdout
    for limit, status in (("5", 3), ("19", 3), ("25%", 0)):
        done = sonde(tmp_path, "history", "trend", "--db", "h.db", "-q", f"--fail-on-regression={limit}")
        assert done.returncode == status, limit
    until = sonde(tmp_path, "history", "trend", "--db", "h.db", "-q", "--fail-on-regression", "--commit", "abc000")
    assert until.returncode == 0


def test_kinds_of_other_programs_can_be_listed(tmp_path):
    assert profile(tmp_path, "--save=h.db", "-q").returncode == 0
    assert sonde(tmp_path, "history", "--db", "h.db", "--kind", "own").returncode == 2
    db = sqlite3.connect(tmp_path / "h.db")
    db.execute("UPDATE series SET kind = 'own'")
    db.commit()
    db.close()
    assert len(entries(tmp_path, "h.db", "--kind", "own")) == 1 and entries(tmp_path, "h.db", "--kind", "bench") == []


@pytest.mark.skipif(os.environ.get("SONDE_FULL") != "1", reason="only with SONDE_FULL=1")
def test_a_hundred_thousand_entries(tmp_path):
    assert profile(tmp_path, "--save=h.db", "-q").returncode == 0
    db = sqlite3.connect(tmp_path / "h.db")
    columns = ", ".join(c[1] for c in db.execute("PRAGMA table_info(entry)") if c[1] not in ("id", "at"))
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) "
               f"INSERT INTO entry (at, {columns}) SELECT at + i, {columns} FROM n, entry WHERE entry.id = 1")
    db.commit()
    db.close()
    assert len(entries(tmp_path)) == 100_000
    assert sonde(tmp_path, "history", "--db", "h.db", "--all").stdout.count("\n") == 100_001
    assert sonde(tmp_path, "history", "prune", "--keep", "10", "--db", "h.db").stdout == "removed 99990 entries\n"
