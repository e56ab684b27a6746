#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: check_install.sh BUILD_DIR [CMAKE [CC]]
# Installs a finished build into an empty folder, moves it, and uses it from there as a stranger
# would: a C and a C++ program, found by pkg-config and by find_package.
set -euo pipefail
build=$1
cmake=${2:-cmake}
cc=${3:-cc}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/moved" # nothing in it may know where it was installed
prefix=$work/moved
lib=$(dirname "$(find "$prefix" -name 'libsonde.so' | head -n 1)")
[[ -f $prefix/include/sonde/sonde.h && -f $lib/pkgconfig/sonde.pc ]]
if find "$prefix/include" -type f | grep -v '^'"$prefix"'/include/sonde/.*\.h$'; then
  echo "installed beside the public headers"
  exit 1
fi

run() { # run NAME PROGRAM: it must print the version
  local got
  got=$(LD_LIBRARY_PATH=$lib "$2")
  [[ $got == "sonde $version" ]] || { echo "$1: printed '$got', expected 'sonde $version'"; exit 1; }
  echo "$1: ok"
}

languages=c
command -v c++ >/dev/null && languages="c cpp"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$lib/pkgconfig
  version=$(pkg-config --modversion sonde)
  flags=$(pkg-config --cflags --libs sonde)
  for language in $languages; do
    compiler=("$cc")
    # SONDE_INIT leaves the fields after the first to their zeros, which -Wextra remarks on in C++.
    [[ $language == cpp ]] && compiler=(c++)
    # shellcheck disable=SC2086
    "${compiler[@]}" -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers "$here/consumer/main.$language" $flags -o "$work/pc_$language"
    run "pkg-config, $language" "$work/pc_$language"
  done
else
  version=$(sed -n 's/^Version: //p' "$lib/pkgconfig/sonde.pc")
  echo "pkg-config: not installed, left out"
fi

"$cmake" -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
  -DLANGUAGES="${languages// /;}" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
for language in $languages; do
  run "find_package, $language" "$work/build/consumer_$language"
done
if [[ -x $prefix/bin/sonde ]]; then # the program finds its library by itself
  "$prefix/bin/sonde" --version >/dev/null
  echo "bin/sonde --version: ok"
fi
