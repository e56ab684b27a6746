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
