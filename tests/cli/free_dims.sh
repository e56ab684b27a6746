# SPDX-License-Identifier: Apache-2.0
# A dimension nobody sets becomes 1, with a warning that says how to set it.
sonde zoo save tiny_mlp mlp.onnx
# The file carries the zoo's defaults; without them the warning comes.
python3 - <<'PY' 2>/dev/null || sed 's/sonde.default.batch/sonde.ignored.batch/' mlp.onnx >plain.onnx
data = open("mlp.onnx", "rb").read()
open("plain.onnx", "wb").write(data.replace(b"sonde.default.batch", b"sonde.ignored.batch"))
PY
sonde run plain.onnx | head -1
sonde run plain.onnx -q
sonde run plain.onnx -s batch=2 | head -1
