#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: check_exports.sh LIBSONDE.SO
# The shared library may export names that start with sonde_ and nothing else.
set -euo pipefail
symbols=$(nm -D --defined-only "$1" | awk '{print $NF}' | sed 's/@.*//')
count=$(grep -c '^sonde_' <<<"$symbols" || true)
others=$(grep -v '^sonde_' <<<"$symbols" || true)
if [[ -n $others ]]; then
  echo "$1 exports names that do not start with sonde_:"
  echo "$others"
  exit 1
fi
if ((count == 0)); then
  echo "$1 exports nothing"
  exit 1
fi
echo "$count exported names, all start with sonde_"
