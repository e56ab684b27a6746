# SPDX-License-Identifier: Apache-2.0
"""Parts of differential.py: the engines, the ways in which sonde runs a model, how answers are judged, and many models
in chunks that a later call need not repeat."""
