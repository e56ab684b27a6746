# SPDX-License-Identifier: Apache-2.0
"""Places that cannot be written, files that cannot be read, words that mean nothing: a sentence that names what is
wrong, the right exit status, and the model's own result in any case."""

import os
import resource
import signal
import subprocess

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

SUFFIXES = ["json", "summary.json", "md", "txt", "folded", "csv", "xlsx", "pb.gz", "pftrace", "html", "page.gz", "otlp.json", "prom"]
CATEGORIES = "model, iteration, operator, executor, memory, thread, user, device"


def sonde(folder, *arguments, **kw):
    environment = {**os.environ, **kw.pop("env", {})}
    return subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=PATIENCE, **kw)


def small_disk():
    """Files of this process end after 512 bytes, as on a disk that fills up; the signal that says so is not ignored."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """What a run prints when nothing stands in its way."""
    return sonde(tmp_path_factory.mktemp("plain"), "run", "zoo:tiny_mlp").stdout


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    formats = [s for s in SUFFIXES if s != "html"]
    done = sonde(folder, "profile", "zoo:tiny_cnn", "-n", "10", "-q", *(x for s in formats for x in ("-o", f"a.{s}")))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(params=SUFFIXES)
def suffix(request, saved, tmp_path_factory):
    """Every format; that of the report page where the build has one."""
    if request.param == "html":
        folder = tmp_path_factory.mktemp("page")
        if "no report page" in sonde(folder, "report", saved / "a.pftrace", "-q", "-o", "page.html").stderr:
            pytest.skip("this build has no report page")
    return request.param


def test_every_format_is_tried_here():
    listed = sonde(None, "profile", "--help").stdout
    formats = next(line for line in listed.splitlines() if line.startswith("Formats:"))
    assert {f.strip(" ,") for f in formats.split()[1:]} == {"." + s for s in SUFFIXES}


def test_a_full_disk_is_an_error_and_the_table_is_shown(suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    path.symlink_to("/dev/full")
    done = sonde(tmp_path, "profile", "zoo:tiny_mlp", "-n", "10", "-o", path, "-o", "good.md")
    assert done.returncode == 1
    assert done.stderr == f"sonde: cannot write '{path}': No space left on device\n"
    assert done.stdout.startswith("Graph run of 3 ops")
    assert path.is_symlink() and (tmp_path / "good.md").stat().st_size > 100


def test_a_disk_that_fills_up_leaves_the_old_file(suffix, tmp_path):
    (tmp_path / f"x.{suffix}").write_text("old")
    done = sonde(tmp_path, "profile", "zoo:tiny_chain", "--no-optimize", "-n", "10", "-q", "-o", f"x.{suffix}", preexec_fn=small_disk)
    assert done.returncode == 1 and f"cannot write 'x.{suffix}': File too large" in done.stderr
    assert os.listdir(tmp_path) == [f"x.{suffix}"]  # nothing half-written beside it
    assert (tmp_path / f"x.{suffix}").read_text() == "old"


def test_every_other_verb_says_that_a_file_becomes_too_large(tmp_path):
    for path, arguments in (("m.onnx", ["zoo", "save", "tiny_mlp", "m.onnx"]),
                            ("j", ["inspect", "zoo:tiny_chain", "-q", "--nodes", "--json", "j"]),
                            ("o.npz", ["run", "zoo:tiny_mlp", "-q", "-s", "batch=500", "-o", "o.npz"])):
        done = sonde(tmp_path, *arguments, preexec_fn=small_disk)
        assert (done.returncode, done.stderr) == (1, f"sonde: cannot write '{path}': File too large\n")
    done = sonde(tmp_path, "run", "zoo:tiny_mlp", f"--weights-cache={tmp_path}/kept", preexec_fn=small_disk)
    assert done.returncode == 0 and "packed weights are not cached" in done.stderr
    assert [p.name for p in tmp_path.rglob("*")] == ["kept"]


def test_quiet_says_nothing_of_what_is_not_kept(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for verb in (["run"], ["profile", "-n", "2"]):
        keeps = [*verb, "zoo:tiny_mlp", f"--weights-cache={tmp_path}/link", f"--tune={tmp_path}/link"]
        assert "is a symbolic link" in sonde(tmp_path, *keeps).stderr
        assert sonde(tmp_path, *keeps, "-q").stderr == ""


def test_places_that_are_not_there_are_named(tmp_path):
    (tmp_path / "folder.json").mkdir()
    for path, why in (("missing/x.json", "the folder 'missing' does not exist"), ("folder.json", "it is a folder"),
                      ("/dev/null/x.csv", "'/dev/null' is not a folder")):
        done = sonde(tmp_path, "profile", "missing.onnx", "-o", path)
        assert (done.returncode, done.stderr) == (2, f"sonde: cannot write '{path}': {why}\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_places_without_permission_are_named(tmp_path):
    (tmp_path / "folder").mkdir(mode=0o555)
    (tmp_path / "old.json").touch(mode=0o444)
    for path, why in (("folder/x.json", "no new file can be made in the folder 'folder': Permission denied"),
                      ("old.json", "Permission denied")):
        done = sonde(tmp_path, "profile", "missing.onnx", "-o", path)
        assert (done.returncode, done.stderr) == (2, f"sonde: cannot write '{path}': {why}\n")


def test_a_summary_goes_where_it_is_told_and_replaces_no_device(tmp_path):
    """--json FILE has its own suffix, or none; a link stays one."""
    for target in ("/dev/full", "/dev/null", "plain"):
        (tmp_path / "out").unlink(missing_ok=True)
        (tmp_path / "out").symlink_to(target)
        done = sonde(tmp_path, "profile", "zoo:tiny_mlp", "-n", "10", "-q", "--json", "out")
        assert done.returncode == (target == "/dev/full"), done.stderr
        assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "plain").read_text().startswith('{"schema":"sonde.summary/1"')
    assert sorted(os.listdir(tmp_path)) == ["out", "plain"]


def test_output_that_does_not_arrive_is_an_error(tmp_path):
    for arguments in (["run", "zoo:tiny_mlp"], ["profile", "zoo:tiny_mlp", "-n", "10"], ["zoo"], ["--help"],
                      ["profile", "zoo:tiny_mlp", "-n", "10", "--json", "-"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        assert done.returncode == 1, arguments
        assert "standard output" in done.stderr and "No space left on device" in done.stderr


# ---- the environment --------------------------------------------------------------------------------------


def test_sonde_trace_on_a_full_disk_costs_no_result(suffix, tmp_path, result):
    (tmp_path / f"t.{suffix}").symlink_to("/dev/full")
    done = sonde(tmp_path, "run", "zoo:tiny_mlp", env={"SONDE_TRACE": f"t.{suffix}"})
    assert (done.returncode, done.stdout) == (0, result)
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("sonde: SONDE_TRACE: ")
    assert f"t.{suffix}" in done.stderr and "No space left on device" in done.stderr


def test_a_disk_that_fills_up_while_tracing_costs_no_result(tmp_path, result):
    for variable, value in (("SONDE_TRACE", "t.pftrace"), ("SONDE_TRACE", "t.json"), ("SONDE_PROFILE", "prof")):
        done = sonde(tmp_path, "run", "zoo:tiny_mlp", env={variable: value}, preexec_fn=small_disk)
        assert (done.returncode, done.stdout) == (0, result), (value, done.stderr)
        assert f"sonde: {variable}: " in done.stderr
    left = [p for p in (tmp_path / "prof").rglob("*") if p.is_file()]
    assert left == []  # no empty file that looks like a profile
    # What of a streamed trace reached the disk opens.
    report = sonde(tmp_path, "report", "t.pftrace")
    assert report.returncode in (0, 1) and "t.pftrace" in report.stderr


def test_words_that_mean_nothing_cost_no_result(tmp_path, result):
    for env, words in (({"SONDE_TRACE": "t.unknown"}, ["SONDE_TRACE", "t.unknown", ".pftrace"]),
                       ({"SONDE_TIMING": "sort=upwards colour=1"}, ["SONDE_TIMING", "upwards", "colour"]),
                       ({"SONDE_LEVEL": "9"}, ["SONDE_LEVEL", "'9'", "1, 2 or 3"])):
        done = sonde(tmp_path, "run", "zoo:tiny_mlp", env=env)
        assert (done.returncode, done.stdout) == (0, result)
        for word in words:
            assert word in done.stderr, (env, done.stderr)


def test_options_that_mean_nothing_are_refused_before_anything_runs(tmp_path):
    for arguments, sentence in (
            (["-o", "x.parquet"], "unknown format of 'x.parquet'"),
            (["-o", "x"], "unknown format of 'x'"),
            (["--categories", "operator,usr"], f"unknown category 'usr'; the categories are {CATEGORIES}"),
            (["--categories", ""], "unknown category ''"),
            (["--report", "memroy"], "unknown report 'memroy'; did you mean 'memory'?"),
            (["--sort", "size"], "--sort is 'time' or 'name', not 'size'"),
            (["--level", "4"], "levels 1 to 3")):
        done = sonde(tmp_path, "profile", "missing.onnx", *arguments)
        assert done.returncode == 2 and sentence in done.stderr, done.stderr


# ---- files that are read ------------------------------------------------------------------------------------


def test_what_is_no_profile_is_said_to_be_none(saved, tmp_path):
    foreign = {name: (saved / f"a.{name}").read_bytes() for name in
               ("summary.json", "md", "txt", "folded", "csv", "xlsx", "pb.gz")}
    foreign |= {"empty": b"", "zeros": bytes(5000), "array": b"[]", "null": b"null", "text": b"hello\n",
                "other trace": b'{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]}',
                "perfetto": b"\x0a\x04\x50\x01\x40\x01" * 50, "not utf-8": b'{"traceEvents":["\xff"]}'}
    for name, data in foreign.items():
        path = tmp_path / name
        path.write_bytes(data)
        for arguments in (["report", path], ["diff", path, saved / "a.pftrace"], ["diff", saved / "a.json", path]):
            done = sonde(tmp_path, *arguments)
            assert done.returncode == 1 and done.stdout == "", (name, done.stdout)
            assert done.stderr.startswith("sonde: ") and done.stderr.count("\n") == 1 and str(path) in done.stderr
    done = sonde(tmp_path, "report", tmp_path)
    assert done.returncode == 1 and str(tmp_path) in done.stderr


@pytest.mark.parametrize("suffix", ["json", "pftrace"])
def test_cut_files_are_used_up_to_the_cut_or_refused(suffix, saved, tmp_path):
    data = (saved / f"a.{suffix}").read_bytes()
    for share in (0.0, 0.001, 0.1, 0.4, 0.9, 0.999):
        path = tmp_path / "cut"
        path.write_bytes(data[:int(share * len(data))])
        done = sonde(tmp_path, "report", path)
        assert done.stderr.startswith("sonde: ") and str(path) in done.stderr
        if suffix == "json" or share < 0.01:
            assert done.returncode == 1 and done.stdout == ""
        else:
            assert done.returncode == 0 and "truncated" in done.stderr
