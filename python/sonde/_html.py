# SPDX-License-Identifier: Apache-2.0
"""Sessions and profiles for notebooks: the report page in a frame of its own, and plain tables and a small chart that take
their colours from the notebook, light or dark. Every text may come from a model or a user, so every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ._errors import Error as SondeError
from ._units import TimeUnit, time_unit

if TYPE_CHECKING:
    from . import _sonde
    from ._session import InferenceSession, NodeArg

_CELL = "padding:2px 10px;text-align:{};border:0"
_SHOWN = 12  # rows


def _text(value: object, limit: int = 80) -> str:
    """Escaped, shortened, and without control characters, which HTML has no way to write."""
    text = str(value)
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Cells are HTML already; the first `left` columns are words, the others figures."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="{_CELL.format("left" if i < left else "right")}">{cell}</{tag}>'
            for i, cell in enumerate(row)
        )

    lines = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    style = "border-collapse:collapse;color:inherit;font-size:inherit;margin:4px 0"
    return f'<table style="{style}"><thead><tr>{cells("th", head)}</tr></thead><tbody>{lines}</tbody></table>'


# ---------------------------------------------------------------- profiles
def _bars(rows: Sequence[dict[str, Any]], unit: TimeUnit) -> str:
    """Shares of the run as bars, drawn in the colour of the text."""
    if not rows:
        return ""
    high, wide, name_wide = 16, 420, 170
    room = wide - name_wide - 50  # of a bar
    parts = []
    for i, row in enumerate(rows):
        y = i * high
        share = min(max(row["share"], 0.0), 1.0)
        fill = 0.25 if row["bracket"] else 0.6
        parts.append(
            f"<g><title>{_text(row['name'])}: {unit.text(row['mean_ns'])} {unit.name}</title>"
            f'<text x="{name_wide - 8}" y="{y + 12}" text-anchor="end">{_text(row["name"], 24)}</text>'
            f'<rect x="{name_wide}" y="{y + 2}" width="{share * room:.1f}" height="{high - 4}" '
            f'fill="currentColor" fill-opacity="{fill}"/>'
            f'<text x="{name_wide + share * room + 6:.1f}" y="{y + 12}">{share * 100:.1f} %</text></g>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{wide}" height="{len(rows) * high}" '
        f'viewBox="0 0 {wide} {len(rows) * high}" font-family="sans-serif" font-size="11" fill="currentColor">'
        f"<title>Share of the run</title>{''.join(parts)}</svg>"
    )


def profile(made: _sonde.Profile) -> str:
    """Latencies, the operators that took most of the time, and a chart of their shares."""
    s = made.summary()
    facts = f"{s['iterations']} inferences, {s['warmups']} warm-ups"
    if s["cpu"]:
        facts += f"; {_text(s['cpu'])}, {s['threads']} threads"
    head = f"<div><b>sonde profile</b> of {_text(s['model'] or 'no model')}: {facts}</div>"
    if not s["iterations"]:
        return f"<div>{head}</div>"
    unit = time_unit(s["mean_ns"])
    latency = _table(
        [f"mean ({unit.name})", "median", "p95", "p99", "min", "max"],
        [[unit.text(s[f"{name}_ns"]) for name in ("mean", "p50", "p95", "p99", "min", "max")]],
        left=0,
    )
    rows = made.rows(0)
    lines = [
        [
            _text(row["name"]),
            f"{row['calls']:.6g}",
            unit.text(row["mean_ns"]),
            f"{row['share'] * 100:.2f} %",
            f"{row['flops'] / row['mean_ns']:.1f}" if row["flops"] and row["mean_ns"] else "",
        ]
        for row in rows[:_SHOWN]
    ]
    more = f"<div>and {len(rows) - _SHOWN} more</div>" if len(rows) > _SHOWN else ""
    lost = f"<div>{s['dropped']} records were dropped</div>" if s["dropped"] else ""
    operators = _table(["operator", "calls", unit.name, "share", "GFLOP/s"], lines)
    tables = f"{latency}{operators}{more}{_bars(rows[:_SHOWN], unit)}{lost}"
    frame = _frame(made) if s["spans"] <= _MOST_SPANS else ""
    if frame:
        tables = f"{frame}<details><summary>The same as tables</summary>{tables}</details>"
    return f"<div>{head}{tables}</div>"


_LARGEST_PAGE = 8 << 20  # bytes: it becomes a part of the notebook's file
_MOST_SPANS = 2_000_000  # more take seconds to write, and their pages are larger than that as a rule


def _frame(made: _sonde.Profile) -> str:
    """The report page, which can reach nothing outside of its frame; "" where it is too large or the build has none."""
    try:
        page = made.write(".html", None, False, 0)
    except SondeError:
        return ""
    if len(page) > _LARGEST_PAGE:
        return ""
    style = "width:100%;height:680px;border:1px solid rgba(128,128,128,.4);border-radius:8px"
    return (
        f'<iframe title="sonde report" sandbox="allow-scripts allow-downloads" style="{style}" '
        f'srcdoc="{escape(page.decode("utf-8"))}"></iframe>'
    )


# ---------------------------------------------------------------- sessions
def _shape(dims: Sequence[object]) -> str:
    return _text(f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]")


def _ports(title: str, args: Sequence[NodeArg]) -> str:
    rows = [[_text(arg.name), _text(arg.type), _shape(arg.shape)] for arg in args[:_SHOWN]]
    if len(args) > _SHOWN:
        rows.append([f"and {len(args) - _SHOWN} more", "", ""])
    return _table([title, "type", "shape"], rows, left=3)


def session(of: InferenceSession) -> str:
    """Inputs, outputs and operators."""
    if of.closed:
        return "<div><b>sonde.InferenceSession</b>, closed</div>"
    look = of._inspect()
    opsets = ", ".join(f"{_text(domain or 'ai.onnx')} {version}" for domain, version in look["opsets"])
    head = (
        f"<div><b>sonde.InferenceSession</b> of {_text(look['name'])}: {look['nodes']:,} nodes, "
        f"{look['parameters']:,} parameters; {opsets}</div>"
    )
    names = [f"{_text(name)}&nbsp;×&nbsp;{count:,}" for name, count in look["operators"]]
    operators = f"<details><summary>{len(names)} operators</summary>{', '.join(names)}</details>"
    return f"<div>{head}{_ports('input', of.get_inputs())}{_ports('output', of.get_outputs())}{operators}</div>"
