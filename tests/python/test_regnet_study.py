# SPDX-License-Identifier: Apache-2.0
"""bench/regnet/study.py with results that were made up: what it runs, and that its page tells what ran."""

import importlib.util
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The study as a module, with an empty folder in place of build/peers."""
    spec = importlib.util.spec_from_file_location("study", ROOT / "bench" / "regnet" / "study.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PEERS", tmp_path / "peers")
    monkeypatch.setattr(module, "PYTHON", tmp_path / "peers" / "venv" / "bin" / "python")
    monkeypatch.setattr(module, "NATIVE", tmp_path / "peers" / "native")
    monkeypatch.delenv("SONDE_BENCH_PYTHON", raising=False)
    return module


def result(name, status="ok", message=None, low=0.9, high=1.1, full=None):
    return {"model": "zoo:regnet_x_400mf", "runtime": {"name": name, "version": "1"}, "threads": 2, "status": status,
            "message": message, "ratio": {"value": 1.0, "low": low, "high": high} if status == "ok" else None,
            "latency_full_ms": full, "program_peak_rss_bytes": 1e6,
            "program_ms": {"mean": 5.0} if status == "ok" else None}


# A program that answers `bench` with two results and says how it was called.
FAKE = """#!{python}
import json, sys
words = sys.argv[1:]
out = {{words[i]: words[i + 1] for i in range(len(words) - 1)}}
json.dump(words, open({log!r}, "w"))
json.dump({{"results": {results}}}, open(out["--json"], "w"))
for word in words:
    if word.endswith(".md"): open(word, "w").write("| a table |")
"""


def run(study, tmp_path, monkeypatch, results):
    program, log, page = tmp_path / "sonde", tmp_path / "log.json", tmp_path / "page.md"
    program.write_text(FAKE.format(python=sys.executable, log=str(log), results=repr(results)))
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["study.py", "--no-setup", "--quick", "--sonde", str(program), "--page", str(page)])
    study.main()
    return json.loads(log.read_text()), page.read_text()


def test_without_setup_nothing_is_installed_and_what_is_there_is_used(study, tmp_path, monkeypatch):
    ran, real = [], study.subprocess.run

    def spy(command, *args, **options):
        ran.append([str(word) for word in command])
        return real(command, *args, **options)

    monkeypatch.setattr(study.subprocess, "run", spy)
    words, _ = run(study, tmp_path, monkeypatch, [result("sonde"), result("onnxruntime")])
    assert words[words.index("--python") + 1] == sys.executable
    tools = {pathlib.Path(command[0]).name for command in ran}
    assert not tools & {"cargo", "npm", "pip"} and not any({"pip", "venv"} & set(command) for command in ran)
    monkeypatch.setenv("SONDE_BENCH_PYTHON", "/opt/python")
    assert study.interpreter() == "/opt/python"
    study.PYTHON.parent.mkdir(parents=True)
    study.PYTHON.touch()
    assert study.interpreter() == str(study.PYTHON)


def test_the_page_introduces_only_what_ran(study, tmp_path, monkeypatch):
    missing = result("torch", "missing", "pip install torch")
    _, page = run(study, tmp_path, monkeypatch, [result("sonde"), result("onnxruntime"), missing])
    introduced = page.split("```")[0]
    assert "One image classifier, RegNet_x_400mf, in ONNX Runtime from Python and sonde." in introduced
    for other in ("PyTorch", "OpenVINO", "RTen", "onnxruntime-native", "16gf", "sonde-c-api"):
        assert other not in introduced, other
    assert "Not measured here: torch (not installed: pip install torch)." in page
    assert "_full" not in page and "c_api.c" not in page
    _, page = run(study, tmp_path, monkeypatch, [result("sonde", full={"p50": 1}), result("sonde-c-api")])
    assert "c_api.c" in page and "`_full` is" in page and "Not measured" not in page


@pytest.mark.parametrize("high, verdict, shown", [(1.1, "agree", "1.00 (0.90…1.10)"), (1e9, "unclear", "1.00 (unclear)"),
                                                  (None, "unclear", "1.00 (unclear)")])
def test_a_ratio_whose_interval_spans_everything_is_unclear(study, high, verdict, shown):
    wide = [result("onnxruntime", low=0.9 if high == 1.1 else 1e-9, high=high)]
    text = study.agreement(wide, [result("onnxruntime")])
    assert f"| {shown} | 1.00 (0.90…1.10) | {verdict} |" in text
