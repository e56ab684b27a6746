#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: recorder_off.sh PROGRAM PROGRAM_WITHOUT_RECORDER
#
# A recorder that is off costs nothing: one more run executes exactly as many instructions as in a
# build without the recorder. Callgrind counts them (it knows no AVX-512, hence avx2 at most), inside
# sonde_session_run only; the difference between 30 and 10 runs leaves out what only first runs do.
set -euo pipefail
level=baseline
grep -qw avx2 /proc/cpuinfo && level=avx2

collected() { # PROGRAM RUNS MODEL
  SONDE_CPU=$level SONDE_THREADS=1 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    --toggle-collect=sonde_session_run "$1" run "zoo:$3" --disable-pass fuse-elementwise -n "$2" -w 1 -q 2>&1 >/dev/null |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

bad=0
for model in tiny_chain tiny_cnn; do
  with=$((($(collected "$1" 30 $model) - $(collected "$1" 10 $model)) / 20))
  without=$((($(collected "$2" 30 $model) - $(collected "$2" 10 $model)) / 20))
  echo "$model at $level: $with instructions a run with the recorder built in and off, $without without it"
  ((with == without && with > 0)) || bad=1
done
exit $bad
