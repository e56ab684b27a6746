#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one case of the program's tests: see README.md.
set -u
program=$(realpath "$1")
case=$(realpath "$2")
expected="${case%.sh}.out"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/work"
ln -s "$program" "$folder/bin/sonde"
export PATH="$folder/bin:$PATH" LC_ALL=C XDG_CACHE_HOME="$folder/cache"
unset SONDE_TIMING SONDE_TRACE SONDE_PROFILE SONDE_LEVEL SONDE_LABELS SONDE_TRACE_LIMIT SONDE_THREADS SONDE_NUMA SONDE_SYSTEM_ROOT SONDE_CPU SONDE_LOG COLUMNS

try() {
    "$@"
    local status=$?
    [ $status -eq 0 ] || echo "exit $status"
}
export -f try

cd "$folder/work" || exit 1
bash "$case" >../got 2>&1 </dev/null
if [ "${UPDATE:-}" ]; then
    cp ../got "$expected"
    exit 0
fi
if ! diff -u --label expected --label got "$expected" ../got; then
    echo "FAILED $(basename "$case" .sh)"
    exit 1
fi
