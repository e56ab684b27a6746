# SPDX-License-Identifier: Apache-2.0
# What inspect says of small models.
sonde inspect zoo:tiny_mlp | sed -E 's/(weights|peak)( +)[0-9.]+ [KM]?i?B/\1\2N/; /activations|workspace|packed/d'
sonde inspect zoo:tiny_mlp --json - | head -c 28
echo
sonde inspect zoo:tiny_mlp -q --json tiny.json
ls
# Bodies are known only while they run; a folder of images gives the sizes of its first.
sonde inspect zoo:tiny_loop | grep -c ', plus control-flow bodies'
{ printf 'P6\n8 8\n255\n'; head -c 192 /dev/zero; } >a.ppm
sonde inspect zoo:tiny_cnn -i . --image-resize 32 | grep inputs
sonde op zoo:tiny_cnn --op-type MaxPool -i . --exec 1 | sed -n 1p
sonde inspect zoo:tiny_if --nodes | sed -n '/^nodes/,$p'
try sonde inspect zoo:tiny_cnn -q --graph cnn.dot --optimized -o cnn.onnx
head -c 7 cnn.dot
echo
sonde run cnn.onnx | head -1
try sonde inspect zoo:tiny_cnn -q --graph cnn.bmp
