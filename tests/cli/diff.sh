# SPDX-License-Identifier: Apache-2.0
# Two profiles compared: what is faster, slower, the same, unclear, new and gone; limits for CI.
# runs FILE COUNT CONV_US OP OP_US: profiles of ONNX Runtime's form, with known times.
runs() {
    awk -v n="$2" -v conv="$3" -v op="$4" -v us="$5" 'BEGIN {
        form = "{\"cat\":\"%s\",\"pid\":7,\"tid\":9,\"ts\":%d,\"dur\":%d,\"ph\":\"X\",\"name\":\"%s\",\"args\":{%s}}"
        print "["
        for (i = 0; i < n; i++) {
            t = 100000 * i
            c = conv + i * 7 % 5
            printf form ",\n", "Node", t + 10, c, "conv1_kernel_time", "\"op_name\":\"Conv\""
            printf form ",\n", "Node", t + 20 + c, 1000, "same_kernel_time", "\"op_name\":\"Gemm\""
            printf form ",\n", "Node", t + 1030 + c, us, "other_kernel_time", "\"op_name\":\"" op "\""
            printf form "%s\n", "Session", t, c + us + 1100, "model_run", "", i + 1 < n ? "," : ""
        }
        print "]"
    }' >"$1"
}
runs old.json 40 4000 Relu 200
runs new.json 40 5000 Clip 300
runs short.json 3 4000 Relu 200
sonde diff old.json new.json
sonde diff old.json old.json --by node
sonde diff old.json new.json --by node | tail -6
try sonde diff old.json new.json --by node -q --fail-above 20
sonde diff old.json short.json | tail -1
try sonde diff old.json new.json -q --fail-above 10%
try sonde diff old.json new.json -q --fail-above 30
try sonde diff new.json old.json -q --fail-above 0
sonde diff old.json new.json --fail-above 10 --json diff.json >/dev/null 2>&1
head -c 42 diff.json
echo
grep -c '"verdict": "slower"' diff.json
grep -o '"failed": true' diff.json
sonde diff old.json new.json --json - | head -c 1
echo
try sonde diff old.json
try sonde diff old.json new.json --by colour
try sonde diff old.json new.json --fail-above some
try sonde diff old.json missing.json
echo '[{"cat": "Session", "name": "session_initialization", "ph": "X", "ts": 1, "dur": 2, "tid": 1}]' >empty.json
try sonde diff old.json empty.json
