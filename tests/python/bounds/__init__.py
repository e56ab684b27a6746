# SPDX-License-Identifier: Apache-2.0
"""What any right engine may answer: bounds for each element of each value of a model of integers and quantised
numbers, after the definitions of ONNX and, for com.microsoft, of ONNX Runtime. No engine takes part, save the onnx
reference for operators that do not round. spans.py has the bounds, rules.py the list of operators."""

from . import floats, products, quantising  # noqa: F401  (for their rules)
from .rules import evaluate, run
from .spans import Span, Unknown, exact, outside

__all__ = ["Span", "Unknown", "evaluate", "exact", "outside", "run"]
