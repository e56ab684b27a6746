# SPDX-License-Identifier: Apache-2.0
"""The plots of sonde bench, read as a person reads them: bars begin at zero and are as long as their figures say, words
do not overlap or leave the picture, names from files are only words."""

import os
import re
import subprocess
import xml.etree.ElementTree as xml

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
SVG = "{http://www.w3.org/2000/svg}"
STRANGE = 'a<b>&"c" mit ü.onnx'
SIZES = {"title": 16, "note": 12, "group": 13, "label": 13, "value": 12, "absent": 12, "tick": 11}


@pytest.fixture(scope="module")
def plots(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    subprocess.run([PROGRAM, "zoo", "save", "tiny_cnn", folder / STRANGE], check=True, capture_output=True)
    (folder / "gone.py").write_text("raise SystemExit(3)\n")
    names = ["all", "x.latency", "x.violins", "x.program", "x.memory", "x.scaling"]
    outputs = [word for name in names for word in ("-o", folder / f"{name}.svg")]
    done = subprocess.run(
        [PROGRAM, "bench", "zoo:tiny_mlp", folder / STRANGE, "-t", "1,2", "-n", "40", "--rounds", "2", "--min-runs", "3",
         "--against", "sonde,sonde:no-optimize,sonde:cpu=baseline", "--peer", f"nobody={folder / 'gone.py'}", *outputs],
        capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return {name: xml.parse(folder / f"{name}.svg").getroot() for name in names}


def words(root):
    return [(element.get("class"), "".join(element.itertext()), element) for element in root.iter(SVG + "text")]


def box(style, text, element):
    """About where a text lies; a sans-serif letter is half as wide as it is high, on average."""
    size = SIZES[style]
    width = 0.5 * size * len(text)
    x, y = float(element.get("x")), float(element.get("y"))
    left = {"start": x, "middle": x - width / 2, "end": x - width}[element.get("text-anchor")]
    return left, y - 0.7 * size, left + width, y


def test_words_do_not_overlap_or_leave_the_picture(plots):
    for name, root in plots.items():
        width, height = float(root.get("width")), float(root.get("height"))
        boxes = [(box(*word), word[1]) for word in words(root)]
        for k, (a, text) in enumerate(boxes):
            assert a[0] >= 0 and a[2] <= width and a[1] >= 0 and a[3] <= height, (name, text)
            for b, other in boxes[:k]:
                apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                assert apart, (name, text, other)


@pytest.mark.parametrize("panel", ["x.latency", "x.program", "x.memory"])
def test_bars_begin_at_zero_and_are_as_long_as_they_say(plots, panel):
    root = plots[panel]
    ticks = [(float(e.get("y")), float(e.get("x")), float(text)) for style, text, e in words(root)
             if style == "tick" and re.fullmatch(r"[0-9.]+", text)]
    bars = [r for r in root.iter(SVG + "rect") if r.get("width") != "100%"]
    values = [(float(e.get("y")), float(text.split()[0])) for style, text, e in words(root) if style == "value"]
    assert len(bars) == len(values) == 12
    for bar, (y, value) in zip(bars, values):
        below = min(t[0] for t in ticks if t[0] > y)  # its own scale is the next one down
        own = sorted((x, number) for at, x, number in ticks if at == below)
        (zero, first), (last, most) = own[0], own[-1]
        assert first == 0 and abs(float(bar.get("x")) - zero) < 0.06
        expected = value / most * (last - zero)
        assert abs(float(bar.get("width")) - expected) < 0.006 * (last - zero) + 0.01 * expected


def test_what_was_not_measured_is_named_in_its_row(plots):
    text = [(style, text) for style, text, _ in words(plots["x.latency"])]
    assert text.count(("label", "nobody")) == 4
    assert len([t for style, t in text if style == "absent"]) == 4


def test_every_panel_is_in_the_whole_picture_and_alone_in_its_own(plots):
    def titles(name):
        return [text for style, text, _ in words(plots[name]) if style == "title"]

    single = [titles(f"x.{name}") for name in ("latency", "violins", "program", "memory", "scaling")]
    assert all(len(one) == 1 for one in single)
    assert titles("all") == [one[0] for one in single]


def test_names_of_models_are_only_words(plots):
    assert any(STRANGE in text for style, text, _ in words(plots["x.latency"]) if style == "group")


def test_nothing_is_drawn_where_there_is_no_number(plots):
    for root in plots.values():
        for element in root.iter():
            for value in element.attrib.values():
                assert "nan" not in value.lower() and "inf" not in value.lower(), element.attrib


# Answers with made-up times: one of them far away.
FAR = """
import sys
for line in sys.stdin:
    word, _, value = line.rstrip("\\n").partition(" ")
    if word == "quit": break
    if word in ("warmup", "run"):
        times = [(41 + k % 3) * 1000000 for k in range(int(value))]
        if len(times) > 1: times[-1] = 900000000
        print("times", *times, flush=True)
    reply = {"load": "loaded 1000 1", "memory": "memory 1048576", "program": "unsupported none",
             "outputs": "outputs none: I keep them"}.get(word)
    if reply: print(reply, flush=True)
"""


def test_the_note_of_the_violins_says_what_they_show(plots, tmp_path):
    (tmp_path / "far.py").write_text(FAR)
    file = tmp_path / "x.violins.svg"
    subprocess.run([PROGRAM, "bench", "zoo:tiny_mlp", "--peer", f"far={tmp_path / 'far.py'}", "--against", "far", "-n", "60",
                    "--rounds", "1", "--turns", "1", "--no-program", "-q", "-o", file], check=True, timeout=PATIENCE)
    far = xml.parse(file).getroot()
    for root in (plots["x.violins"], far):
        text = words(root)
        (note,) = [word for style, word, _ in text if style == "note"]
        assert note.startswith("All samples; dark: middle half, light: median.")
        counted = sum(int(n) for _, word, _ in text for n in re.findall(r", (\d+) beyond$", word))
        assert (f" {counted} beyond the scale." in note) == (counted > 0) and ("beyond" in note) == (counted > 0)
        scales = {}  # the first tick of each is its leftmost
        for style, word, e in text:
            if style == "tick" and re.fullmatch(r"[0-9.]+", word):
                scales.setdefault(e.get("y"), []).append((float(e.get("x")), float(word)))
        above = sum(min(ticks)[1] > 0 for ticks in scales.values())
        said = ("" if not above else "Some scales begin" if above < len(scales) else
                "The scale begins" if above == 1 else "The scales begin")
        assert note.endswith(f" {said} above zero.") if said else "above zero" not in note
    assert "n = 60, 1 beyond" in [word for _, word, _ in words(far)]
