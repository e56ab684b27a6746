# SPDX-License-Identifier: Apache-2.0
# What another form of a model would give; figures are cut out, the form stays.
quick="-n 2 -w 0 -t 1 --cpu baseline"
shape() { sed -E '/^$/d; s/^measured .* UTC on .*/measured DATE on MACHINE/; s/-?[0-9]+(\.[0-9]+)? (KiB|B)$/N/; s/[0-9]+(\.[0-9]+)? (KiB|B)\b/N/g; s/[0-9]+\.[0-9]+/N/g; s/ (ns|µs|ms) / T /g; s/\((ns|µs|ms)\)/(T)/; s/ +/ /g; s/ (now|int8|int4|sparse90)$/ F/'; }
order() { sort; }
last() { tail -2 p.csv | sed -E 's/measured [^;]*\)/measured DATE on MACHINE/g'; }
sonde whatif zoo:tiny_mlp --scenarios sparse90,int8,batch=4,int4 --by op $quick > first.txt
shape < first.txt | order
sonde whatif zoo:tiny_cnn_int8 --scenarios int4 --no-mix $quick | grep -E '^int4'
echo "== an equal question is answered from the cache, whatever the order of its parts"
sonde whatif zoo:tiny_mlp --scenarios sparse90,int8,batch=4,int4 $quick --json - | grep -c '"cached": true'
sonde whatif zoo:tiny_mlp --scenarios int8+sparse90 --no-mix -q $quick --json first.json
sonde whatif zoo:tiny_mlp --scenarios sparse90+int8 --no-mix -q $quick --json - | grep -c '"cached": true'
sonde whatif zoo:tiny_mlp --scenarios sparse90 --no-mix --no-cache -q $quick --json - | grep -c '"cached": true'
echo "== files"
sonde whatif zoo:tiny_mlp --scenarios sparse90 -q $quick -o a.csv -o a.xlsx -o a.json && head -1 a.csv && ls a.*
tr -d '\r' < a.csv | awk -F, '{ print NF }' | sort -u
sonde profile zoo:tiny_mlp -n 2 -t 1 -q -o p.csv && tail -1 p.csv
sonde profile zoo:tiny_mlp -n 2 -t 1 --what-if -q -o p.csv && last
head -2 p.csv > measured.csv
echo "== measured ratios are taken from the cache, unless others are given"
sonde profile zoo:tiny_mlp -n 2 -t 1 -q -o p.csv && last
head -2 p.csv | cmp - measured.csv && echo the same ratios
sonde profile zoo:tiny_mlp -n 2 -t 1 -q -o p.csv --sparse-ratio 90=3 && tail -1 p.csv
echo "== chosen nodes"
changed() { sonde whatif zoo:tiny_mlp --scenarios int8 --no-mix -q $quick "$@" --json - | grep -o '"changed": [1-9]'; }
echo /fc1/Gemm > names.txt
changed --only '/fc*'
changed --only @names.txt
changed --only @names.txt --only /fc2/Gemm
echo "== wrong"
try sonde whatif
try sonde whatif zoo:tiny_mlp zoo:tiny_cnn
try sonde whatif zoo:nobody
try sonde whatif zoo:tiny_mlp --scenarios int9 $quick
try sonde whatif zoo:tiny_mlp --scenarios sparse100 $quick
try sonde whatif zoo:tiny_mlp --scenarios '' $quick
try sonde whatif zoo:tiny_mlp --only /nobody $quick
try sonde whatif zoo:tiny_mlp --by kernel
try sonde whatif zoo:tiny_mlp -n 0
try sonde whatif zoo:tiny_mlp -o a.txt
ln -s /dev/full full.csv
try sonde whatif zoo:tiny_mlp --scenarios int8 $quick -q -o full.csv
try sonde whatif zoo:tiny_mlp --scenarios int8 $quick -q --json /dev/full
try sonde profile zoo:tiny_mlp --what-if --sparse-ratio 90=3
