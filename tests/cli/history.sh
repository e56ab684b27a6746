# SPDX-License-Identifier: Apache-2.0
# Profiles and benchmarks go into a database and come out of it: lists, filters, references, trends,
# comparisons, files, removing; and what is refused.
export TZ=UTC SONDE_MACHINE=box
unset GITHUB_SHA CI_COMMIT_SHA SONDE_HISTORY XDG_DATA_HOME
export HOME=$PWD/home
clean() {
    sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}/DATE/g; s/[0-9]+(\.[0-9]+)? (ns|µs|ms|s)\b/TIME/g
        s/± [0-9.]+ %//; s/\((ns|µs|ms)\)/(UNIT)/g; s/[0-9.]+ [KMG]iB/BYTES/; s/[-+]?[0-9]+\.[0-9]+/X/g; s/[▁▂▃▄▅▆▇█]+/BARS/
        s/box, .*\)/box, CPU)/; s/^(processor ).*/\1CPU/' | tr -s ' '
}
save() { # save COMMIT OPTION...
    local commit=$1
    shift
    sonde profile zoo:tiny_mlp -n 30 -w 3 -t 1 --save=h.db --commit "$commit" "$@"
}
try sonde history 2>&1 | sed "s#$PWD/##"
try sonde history --db h.db
save aaaa111 --note 'the "first"' -q
save bbbb222 2>&1 >/dev/null
save cccc333 -q -s batch=4
save dddd444 -q --save=./h.db
sonde history --db h.db | clean
echo "--- filters"
sonde history list zoo:tiny_mlp --db h.db --commit bb | clean
sonde history --db h.db -n 1 --options 'inputs=input f32[4, 16]' | clean
sonde history --db h.db --note '*first*' --since 1h --until 2100-01-01 --machine box --kind profile | clean
sonde history --db h.db --model 'nothing*'
echo "--- json"
sonde history --db h.db --all --json - | grep -o '"commit": "[^"]*"\|"options": {[^}]*}\|"schema": "[^"]*"'
echo "--- show"
sonde history show bbbb --db h.db --sort name | clean | sed -E '/^Graph run/,$d; s/^content .*/content HASH/; s/^version .*/version V/'
sonde history show @0 --db h.db -o shown.pftrace -o shown.json | grep -c 'Gemm'
sonde report shown.pftrace --json - | grep -o '"model":"[^"]*"'
sonde history export 1 --db h.db -o one.pftrace && sonde diff one.pftrace one.pftrace | tail -1 | cut -c1-5
sonde history show '#1' --db h.db --json - | grep -o '"note": "[^,]*\|"samples_ns"'
echo "--- diff"
sonde history diff --db h.db --json d.json | clean | head -4
grep -o '"schema": "sonde.history.diff/1"' d.json
sonde history diff cccc @0 --db h.db --by node -o page.html 2>&1 >/dev/null
head -c 9 page.html && echo
try sonde history diff @-3 @0 --db h.db
try sonde history diff @-1 @0 --db h.db -q --fail-on-regression=1000
echo "--- trend"
sonde history trend zoo:tiny_mlp --db h.db | clean
sonde history trend --db h.db -q --fail-on-regression -o t.svg -o t.html --json t.json
head -c 5 t.svg && echo
grep -o '"title": "[^"]*"\|"failed": [a-z]*' t.json
sonde history trend --db h.db --op Gemm --across options --json - | grep -o '"title": "[^"]*"\|"across": "[^"]*"\|"which": "[^"]*"'
sonde history trend 'zoo:*' --db h.db --across options | clean
try sonde history trend 'zoo:tiny_mpl' --db h.db -q --fail-on-regression --json none.json
grep -o '"failed": [a-z]*' none.json
try sonde history trend --db h.db --op Gemn --fail-on-regression=5
try sonde history trend 'zoo:tiny_mpl' --db h.db
echo "--- bench"
sonde bench zoo:tiny_mlp -t 1 -n 20 --rounds 1 --no-program -q --save=h.db --commit eeee555
sonde history --db h.db --kind bench | clean
sonde history show @0 --db h.db | clean | sed -E 's/^content .*/content HASH/; s/^version .*/version V/; s/^mean .*/mean/; s/ \(95 %.*//'
echo "--- the usual place"
sonde profile zoo:tiny_mlp -n 10 -t 1 -q --save
find home -name '*.db'
sonde history | wc -l
echo "--- removing"
try sonde history prune --db h.db
sonde history prune --keep 1 --only-profiles --db h.db
sonde history prune --keep 100 --db h.db --json -
sonde history rm @-1 1 --db h.db --kind profile
try sonde history rm 1 --db h.db
sonde history prune --keep 0 --model 'zoo:*' --db h.db
sonde history --db h.db
echo "--- what is refused"
echo 'some text' >text.db
try sonde history --db text.db
try sonde profile zoo:tiny_mlp -n 5 -t 1 -q --json s.json --save=text.db
head -c 1 s.json && echo
cat text.db
try sonde profile zoo:tiny_mlp --note x
try sonde history lists
try sonde history show
try sonde history show 99 --db h.db
try sonde history show some --db h.db
try sonde history --since soon --db h.db
try sonde history trend -o x.png --db h.db
try sonde history diff -o x.csv --db h.db
try sonde history export @0 --db h.db
try sonde history trend --across colours --db h.db
try sonde history --op Conv --db h.db
try sonde history show @0 --fail-on-regression --db h.db
try sonde history diff --by colour --db h.db
try sonde history trend --fail-on-regression=some --db h.db
for verb in list trend 'show @0' diff 'rm @0' 'prune --keep 1' 'export @0 -o x.json'; do
    try sonde history $verb --db h.db --kind benhc
done
