#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: compare.sh BASE HEAD MODEL…
#
# Are models slower than they were? The last step of a CI job: measures each MODEL in the folder HEAD against the same
# MODEL in the folder BASE on this machine, in turns, writes a comment in Markdown, and exits with
#   0  no model is slower by more than the limit
#   1  something could not be measured
#   2  wrong usage
#   3  a model is slower by more than the limit, and noise does not explain it
#
# MODEL is a path below BASE and HEAD, or zoo:NAME. Variables change the rest:
#   LIMIT=5                     percent that a model may be slower
#   ROUNDS=7                    measurements of each side, at least 6
#   RUNS="-n 100 -w 5"          how long one of them is: options of 'sonde profile'
#   BASE_OPTIONS= HEAD_OPTIONS= further options of 'sonde profile' for either side, such as "-t 1"
#   SONDE=sonde                 the program; BASE_SONDE and HEAD_SONDE name one for each side
#   OUT=sonde-ci                folder for the comment (comment.md), profiles and pages
set -eu

usage() {
  echo "usage: compare.sh BASE HEAD MODEL…; the head of the script says more" >&2
  exit 2
}
[ $# -ge 3 ] || usage
base=$1 head=$2
shift 2
limit=${LIMIT:-5} rounds=${ROUNDS:-7} runs=${RUNS:--n 100 -w 5} out=${OUT:-sonde-ci}
base_sonde=${BASE_SONDE:-${SONDE:-sonde}} head_sonde=${HEAD_SONDE:-${SONDE:-sonde}}
case $rounds in '' | *[!0-9]*) usage ;; esac
case $limit in '' | *[!0-9.]* | *.*.* | .) usage ;; esac
if [ "$rounds" -lt 6 ]; then
  echo "compare.sh: ROUNDS=$rounds is too few: an interval of 95 % needs 6" >&2
  exit 2
fi
mkdir -p "$out"

# One side, once: a profile, and its median in ms on standard output. What a failing program says is passed on.
measure() { # PROGRAM OPTIONS MODEL FILE
  # Options are words: they are split on purpose.
  # shellcheck disable=SC2086
  "$1" profile "$3" $runs $2 -q -o "$4.pftrace" --json "$4.json" >"$4.log" 2>&1 || {
    cat "$4.log" >&2
    return 1
  }
  sed -n 's/.*"latency_ms":{[^}]*"p50":\([0-9.]*\).*/\1/p' "$4.json" | head -n 1
}

# MODEL as SIDE has it.
model_of() { # FOLDER MODEL
  case $2 in
  zoo:*) echo "$2" ;;
  *) echo "$1/$2" ;;
  esac
}

# Lines "base head" in ms, one for each round, to: median of both, median ratio and its interval, the round with that
# ratio, and a verdict. Both sides of a round were measured side by side, so their ratio does not depend on what the
# machine did meanwhile. The interval lies between two of the sorted ratios, so it is right whatever the noise is like:
# the k-th smallest and the k-th largest of n hold the median with 1 - 2 P(fewer than k of n coins show heads).
judge() {
  LC_ALL=C awk -v limit="$limit" '
    $1 > 0 && $2 > 0 { n++; b[n] = $1; h[n] = $2; r[n] = $2 / $1; at[n] = n }
    function middle(list, n, i, j, t, own) {
      for (i = 1; i <= n; i++) own[i] = list[i]
      for (i = 2; i <= n; i++) for (j = i; j > 1 && own[j] < own[j - 1]; j--) { t = own[j]; own[j] = own[j - 1]; own[j - 1] = t }
      return n % 2 ? own[(n + 1) / 2] : (own[n / 2] + own[n / 2 + 1]) / 2
    }
    END {
      if (n < 6) exit 1
      base = middle(b, n); head = middle(h, n); ratio = middle(r, n)
      for (i = 2; i <= n; i++) for (j = i; j > 1 && r[j] < r[j - 1]; j--) {
        t = r[j]; r[j] = r[j - 1]; r[j - 1] = t; t = at[j]; at[j] = at[j - 1]; at[j - 1] = t
      }
      chance = 0.5 ^ n; tail = chance
      for (k = 1; 1 - 2 * (tail + chance * (n - k + 1) / k) >= 0.95; k++) { chance *= (n - k + 1) / k; tail += chance }
      low = r[k]; high = r[n + 1 - k]; bound = 1 + limit / 100
      verdict = low > bound ? "slower" : high < 1 ? "faster" : high <= bound ? "not slower" : "unclear"
      printf "%.6g %.6g %.6f %.6f %.6f %d %s\n", base, head, ratio, low, high, at[int((n + 1) / 2)], verdict
    }'
}

take() {
  base_ms=$1 head_ms=$2 ratio=$3 low=$4 high=$5 typical=$6
  shift 6
  verdict=$*
}

# A ratio as a change: 1.052 is +5.2 %.
percent() { LC_ALL=C awk -v r="$1" 'BEGIN { printf "%+.1f %%", (r - 1) * 100 }'; }

# A name inside a cell of a table.
cell() { printf '%s' "$1" | tr '\n\r\t`' "   '" | sed 's/|/\\|/g'; }

table=$out/table.md details=$out/details.md
: >"$table"
: >"$details"
slower=0 unclear=0 number=0
for model in "$@"; do
  number=$((number + 1))
  files=$out/$number
  : >"$files.pairs"
  round=1
  while [ "$round" -le "$rounds" ]; do
    # Who is first changes, so that neither side always finds the caches and the clock as the other left them.
    if [ $((round % 2)) -eq 1 ]; then
      b=$(measure "$base_sonde" "${BASE_OPTIONS:-}" "$(model_of "$base" "$model")" "$files.base.$round")
      h=$(measure "$head_sonde" "${HEAD_OPTIONS:-}" "$(model_of "$head" "$model")" "$files.head.$round")
    else
      h=$(measure "$head_sonde" "${HEAD_OPTIONS:-}" "$(model_of "$head" "$model")" "$files.head.$round")
      b=$(measure "$base_sonde" "${BASE_OPTIONS:-}" "$(model_of "$base" "$model")" "$files.base.$round")
    fi
    echo "$b $h" >>"$files.pairs"
    round=$((round + 1))
  done
  figures=$(judge <"$files.pairs") || {
    echo "compare.sh: '$model' gave too few figures; see $files.pairs" >&2
    exit 1
  }
  # shellcheck disable=SC2086
  take $figures
  case $verdict in
  slower) slower=$((slower + 1)) ;;
  unclear) unclear=$((unclear + 1)) ;;
  esac
  echo "| \`$(cell "$model")\` | $base_ms | $head_ms | $(percent "$ratio") | $(percent "$low") … $(percent "$high") | **$verdict** |" >>"$table"

  # The operators, in the round that is most like all rounds.
  {
    echo "<details><summary>Operators of <code>$(cell "$model" | sed 's/&/\&amp;/g; s/</\&lt;/g')</code></summary>"
    echo
    echo '```text'
    "$head_sonde" diff "$files.base.$typical.pftrace" "$files.head.$typical.pftrace" -o "$files.html" 2>/dev/null ||
      "$head_sonde" diff "$files.base.$typical.pftrace" "$files.head.$typical.pftrace"
    echo '```'
    echo
    echo '</details>'
  } >>"$details"
done

{
  if [ "$slower" -gt 0 ]; then
    echo "### sonde: $slower of $number slower by more than $limit %"
  elif [ "$unclear" -gt 0 ]; then
    echo "### sonde: $unclear of $number unclear, none slower for certain"
  else
    echo "### sonde: not slower"
  fi
  echo
  echo '| model | base, ms | head, ms | change | 95 % interval | verdict |'
  echo '| --- | ---: | ---: | ---: | :---: | --- |'
  cat "$table"
  echo
  echo "Medians of $rounds rounds in which base and head took turns on one machine. Slower: the whole interval lies above +$limit %."
  echo
  cat "$details"
} >"$out/comment.md"
rm -f "$table" "$details"
cat "$out/comment.md"
[ "$slower" -eq 0 ] || exit 3
