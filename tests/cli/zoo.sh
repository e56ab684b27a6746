# SPDX-License-Identifier: Apache-2.0
# The built-in models: the list, and saving one.
sonde zoo
try sonde zoo save tiny_mlp mlp.onnx
try sonde zoo save zoo:tiny_loop loop.onnx --seed 3
ls
sonde inspect mlp.onnx | head -8
try sonde zoo save resnet out.onnx
