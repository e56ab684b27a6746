# SPDX-License-Identifier: Apache-2.0
# Two models compared tensor by tensor: what is equal, what differs and where; limits for CI; files; mistakes.
sonde zoo save tiny_mlp a.onnx >/dev/null
sonde zoo save tiny_mlp b.onnx --seed 5 >/dev/null
sonde compare a.onnx a.onnx
sonde compare a.onnx b.onnx --top 2 | sed -E 's/ +-?[0-9.e+-]+$//; s/( +-?[0-9.e+-]+){4,}/ NUMBERS/'
sonde compare zoo:tiny_loop zoo:tiny_loop --samples 3
sonde compare zoo:tiny_text --against sonde:no-optimize --all | tail -10
sonde compare a.onnx --precision f32,f32 | head -2
# limits
sonde compare a.onnx a.onnx -q --fail-above 100dB
try sonde compare a.onnx b.onnx -q --fail-above 60dB 2>&1 | sed -E 's/of .*;/of NUMBERS;/'
try sonde compare a.onnx b.onnx -q --fail-above 1e9
try sonde compare a.onnx b.onnx -q --fail-above 0.1% 2>&1 | sed -E 's/of .*;/of NUMBERS;/'
# files
sonde compare a.onnx b.onnx -q --json c.json --csv c.csv
head -c 80 c.json
echo
grep -c '"over":true' c.json
head -1 c.csv
sonde compare a.onnx b.onnx --json - | head -c 1
echo
try sonde compare a.onnx b.onnx -q --json /dev/full
try sonde compare a.onnx b.onnx -q --json nowhere/c.json
# mistakes
try sonde compare
try sonde compare a.onnx
try sonde compare a.onnx b.onnx a.onnx
try sonde compare a.onnx missing.onnx
try sonde compare a.onnx zoo:tiny_text
try sonde compare a.onnx --precision f32,f8
try sonde compare a.onnx b.onnx --bound loud
try sonde compare a.onnx b.onnx --fail-above -3dB
try sonde compare a.onnx --against onxruntime
try sonde compare a.onnx --against onnxruntime,torch
try sonde compare a.onnx b.onnx -i nothing.npz
mkdir empty
try sonde compare a.onnx b.onnx -i empty
