# SPDX-License-Identifier: Apache-2.0
# What inspect says of small models.
sonde inspect zoo:tiny_mlp | grep -v -e activations -e workspace -e packed
sonde inspect zoo:tiny_if --nodes | sed -n '/^nodes/,$p'
try sonde inspect zoo:tiny_cnn -q --graph cnn.dot --optimized -o cnn.onnx
head -c 7 cnn.dot
echo
sonde run cnn.onnx | head -1
try sonde inspect zoo:tiny_cnn -q --graph cnn.bmp
