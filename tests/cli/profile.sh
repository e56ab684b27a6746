# SPDX-License-Identifier: Apache-2.0
# The table and the files of a profile; figures are cut out.
sonde profile zoo:tiny_mlp -n 12 -o trace.json -o mlp.summary.json | grep -v '^$' |
    sed 's/  *[0-9.]*[nµm]*s  *([0-9.]*%)//; s/ in [0-9.]*[nµm]*s//; s/;.*//' | LC_ALL=C sort
ls
head -c 15 trace.json
echo
sonde zoo:tiny_mlp -n 10 -q
sonde profile zoo:tiny_mlp -n 10 --json - | head -c 1
echo
sonde run zoo:tiny_mlp -p | grep -c 'Graph run of'
sonde profile zoo:tiny_loop -n 10 --filter-op Loop | grep -c Loop
SONDE_TIMING= sonde run zoo:tiny_mlp -q 2>&1 | grep -c 'Graph run of'
SONDE_TRACE=whole.json sonde run zoo:tiny_mlp -q
ls whole.json
sonde profile zoo:tiny_mlp -n 10 --instances 2 -t 2 | sed -nE 's/;.*//; s/: [0-9.]+ /: N /; /instances/p'
try sonde profile zoo:tiny_mlp --instances 2 --counters
try sonde run zoo:tiny_mlp --instances 2000
try sonde profile zoo:tiny_mlp -n 10 -q -o out.nothing 2>&1 | cut -c1-6
sonde run zoo:tiny_mlp -v 2>&1 | grep -c '^#'
# The run that prints its steps is a warm-up.
for warm in 0 2; do
  sonde profile zoo:tiny_mlp -n 5 -w $warm -v 2>&1 | grep -o '^#0\|mean of.*runs\|warm-up [0-9]*'
done
sonde run zoo:tiny_mlp -p -v 2>&1 | grep -o '^#0\|mean of.*run\|warm-up [0-9]*'
sonde profile zoo:tiny_mlp -n 2 --filter-op Foo | grep 'no operator' | cut -d';' -f1
sonde profile zoo:tiny_mlp -n 2 -q -o mlp.pftrace
sonde report mlp.pftrace --filter-op Gemm,Foo | grep 'no operator' | cut -d';' -f1
SONDE_TIMING=filter-op=Foo sonde run zoo:tiny_mlp -q 2>&1 | grep 'no operator' | cut -d';' -f1
try sonde profile zoo:tiny_mlp --report frob
# Words of the environment that are not understood are told and change nothing.
for word in SONDE_LEVEL=9 SONDE_THREADS=abc SONDE_LOG=loud SONDE_INSTANCES=none SONDE_TIMING=sort=banana; do
  env $word sonde run zoo:tiny_mlp -q 2>&1 | grep '^sonde:'
done
