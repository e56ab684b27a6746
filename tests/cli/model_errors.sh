# SPDX-License-Identifier: Apache-2.0
# Models, names and files that are not there: the sentence names what there is.
try sonde run no_such_model.onnx
try sonde run zoo:regnet_400mf
try sonde run zoo:xyz
try sonde run zoo:tiny_mlp -s width=3
try sonde run zoo:tiny_mlp -s batch
try sonde run zoo:tiny_mlp -s input.1=3
try sonde run zoo:tiny_mlp -r imput=0:1
try sonde run zoo:tiny_mlp -r input=5:1
try sonde run zoo:tiny_mlp -i imput=x.npy
try sonde run zoo:tiny_mlp -i x.npy
try sonde run zoo:tiny_mlp --disable-pass nothing 2>&1 | cut -d';' -f1
try sonde check no_such_folder
mkdir empty
try sonde check empty
echo "not a model" >bad.onnx
try sonde inspect bad.onnx 2>&1 | cut -c1-15
# A model of a later IR version runs, and what is not known of it is said; with -q it is not.
sonde zoo save tiny_mlp mlp.onnx
{ printf '\010\017'; tail -c +3 mlp.onnx; printf '\362\006\003abc'; } >later.onnx
sonde run later.onnx | head -1
sonde inspect later.onnx | head -1
sonde run later.onnx -q
# Files beside a model: labels that are not there, a size that the input's file does not have.
try sonde run missing.onnx --top 1 --labels no_such_labels.txt
try sonde bench missing.onnx --top 1 --labels no_such_labels.txt
{ printf "\223NUMPY\001\000v\000%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 16), }"; head -c 64 /dev/zero; } >one.npy
try sonde run zoo:tiny_mlp -q -i one.npy -s batch=1
try sonde run zoo:tiny_mlp -i one.npy -s batch=4
try sonde run zoo:tiny_mlp -i input=one.npy --batch-size 4
