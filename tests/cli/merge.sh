# SPDX-License-Identifier: Apache-2.0
# Traces of several workers: labelled, joined, shown by worker, and what cannot be read.
export SONDE_LABELS='host=box,site=a\,b'
mkdir traces traces/deep
for worker in 1 2 10; do
  sonde profile zoo:tiny_mlp -n $worker -w 1 -q -o traces/w$worker.pftrace --label worker=$worker --label version=7
done
mv traces/w10.pftrace traces/deep
sonde report traces/w1.pftrace -q --json - | grep -o '"labels":{[^}]*}'
sonde merge traces -o fleet.pftrace -o fleet.summary.json -o fleet.json -o fleet.md | grep -v '^clocks:'
grep -o '"iterations":[0-9]*,"warmups":[0-9]*,"instances":[0-9]*' fleet.summary.json
# Figures are cut out; runs are exact.
figures() { sed -E 's/ +[0-9]+\.[0-9]+( %)?/ N/g; s/\((ns|µs|ms)\)/(unit)/g; s/(p50|p95|p99) +/\1 /g; s/  +/ /g' | grep -v straggler; }
sonde report --by worker traces | figures
sonde report --by host fleet.pftrace | figures
sonde report --by version fleet.pftrace --json - | tr -d '\n' | grep -o '"versions": \[[^]]*' | grep -o '"model.*"runs": [0-9]*'
sonde report fleet.pftrace | grep -o 'mean of.*' | cut -d';' -f1
# The same again, from the joined file.
sonde merge fleet.pftrace traces -q -o again.pftrace
sonde report --by worker again.pftrace --json - | grep -c '{"host": "box", "worker": "[0-9][0-9]*", "model": "tiny_mlp"'
# What cannot be read is named; the rest is joined.
echo nothing >traces/bad.pftrace
head -c 3000 traces/w2.pftrace >traces/cut.pftrace
rm traces/w2.pftrace
try sonde merge traces missing.pftrace -o rest.pftrace 2>&1 | sed '/^clocks:/d; s/byte [0-9]*/byte N/; s/(a Perfetto.*/(…)/'
sonde report --by worker rest.pftrace 2>/dev/null | figures | head -4 | cut -c1-40
try sonde merge traces/bad.pftrace -o none.pftrace 2>&1 | sed 's/(a Perfetto.*/(…)/'
ls none.pftrace 2>&1
mkdir empty
try sonde merge empty -o none.pftrace
try sonde merge traces
try sonde merge -o none.pftrace
try sonde merge fleet.pftrace -o fleet.pftrace
try sonde merge traces -o fleet.nothing 2>&1 | cut -c1-50
try sonde report --by rack fleet.pftrace
try sonde report --by host fleet.pftrace -o x.json
try sonde report traces/w1.pftrace fleet.pftrace
try sonde profile zoo:tiny_mlp --label nothing
try sonde profile zoo:tiny_mlp --label =x
SONDE_LABELS=host sonde profile zoo:tiny_mlp -n 1 -q
