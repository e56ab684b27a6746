# SPDX-License-Identifier: Apache-2.0
# A model of integers: the table, what is left in float and why, wrong usage; no file where it fails.
mkdir images
for i in 1 2 3; do { printf 'P6\n40 40\n255\n'; head -c 4800 /dev/zero | tr '\0' "\\$((i * 70 % 256))"; } >images/$i.ppm; done
figures() { sed -E 's/[0-9.]+ dB/N dB/; s/in [0-9.]+ %/in N %/; s/on this machine: .*/on this machine: N/'; }
sonde quantize zoo:tiny_cnn --calibrate images -o int8.onnx | figures
sonde run int8.onnx -s batch=1 -q && echo runs
sonde quantize zoo:tiny_cnn --calibrate images --except /pointwise/conv/Conv --method minmax --per-tensor --no-measure -o some.onnx | figures
sonde quantize zoo:tiny_cnn --calibrate images --only '*/conv/Conv' --except '/depth*' --samples 1 --no-measure -q --json - -o some.onnx | grep -o '"products_quantized":[0-9]*\|"samples":[0-9]*'
sonde quantize zoo:tiny_mlp --weights-only 4 --block-size 16 --no-measure -o int4.onnx
sonde quantize zoo:tiny_mlp --dynamic --no-measure -q --json - -o dynamic.onnx | grep -o '"schema":[^,]*,"model":[^,]*,"output":[^,]*,"kind":[^,]*'
sonde quantize zoo:tiny_cnn --calibrate images --goal 150 -q --no-measure -o best.onnx 2>&1 | sed -E 's/[0-9.]+ dB and/N dB and/'
sonde quantize zoo:tiny_cnn --calibrate images --goal 150 -q --no-measure -o best.onnx 2>/dev/null; echo "exit $?, $(ls best.onnx)"
echo "== wrong"
try sonde quantize
try sonde quantize zoo:tiny_cnn
try sonde quantize zoo:tiny_cnn -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate nowhere -o x.onnx
mkdir empty
try sonde quantize zoo:tiny_cnn --calibrate empty -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --method magic -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --dynamic --weights-only 4 -o x.onnx
try sonde quantize zoo:tiny_mlp --weights-only 5 -o x.onnx
try sonde quantize zoo:tiny_mlp --weights-only 4 --block-size 20 -o x.onnx
try sonde quantize zoo:tiny_mlp --weights-only 4 --block-size 0 -o x.onnx
try sonde quantize zoo:tiny_mlp --dynamic --block-size 32 -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --method percentile --percentile 0 -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --percentile 99 -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --samples 0 -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --goal 0 -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --except conv -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --only '/zz*' -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --except @nowhere.json -o x.onnx
try sonde quantize zoo:tiny_cnn_int8 --calibrate images -o x.onnx
try sonde quantize zoo:tiny_loop --dynamic -o x.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --no-measure -q -o model.bin
ln -s /dev/full full.onnx
try sonde quantize zoo:tiny_cnn --calibrate images --no-measure -q -o full.onnx
rm full.onnx
ls
