# SPDX-License-Identifier: Apache-2.0
# The doctor's topics, their order, and that every one has evidence; what it says depends on the machine.
topics() { sed -nE 's/^\[(good|note|slow)\] ([a-z ]+): .*/\2/p' | grep -vE 'build|pages|peaks|placement|siblings'; }
sonde doctor | topics
sonde doctor --cpu baseline -t 1 | grep -A1 -E 'instructions: only baseline' | sed -E 's/not .*/not X/; s/has baseline.*/has X/'
echo "== calibrated"
sonde doctor --calibrate --json doctor.json >/dev/null && grep -Eo '"schema":"[^"]*"|"peak_of_(one|all)"' doctor.json
head -1 "$XDG_CACHE_HOME/sonde/peaks"
COLUMNS=200 sonde profile zoo:tiny_cnn -n 3 | grep -o '% roofline'
sonde profile zoo:tiny_cnn -n 3 -q -o p.summary.json && grep -c '"roofline":' p.summary.json >/dev/null && echo "shares are in the summary"
sonde doctor zoo:tiny_cnn -t 1 | topics | grep -E 'operators'
sonde profile zoo:tiny_cnn -n 3 --counters | grep -oE '^in total: task-clock'
echo "== not kept where others can write"
mkdir -p open/sonde && chmod 777 open/sonde
XDG_CACHE_HOME=$PWD/open sonde doctor --calibrate -t 1 2>&1 >/dev/null | sed "s|$PWD|HERE|"
ls open/sonde
echo "== wrong"
try sonde doctor a b
try sonde doctor nothing.onnx
