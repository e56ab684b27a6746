# SPDX-License-Identifier: Apache-2.0
# Wrong usage: one line that says what is wrong, exit 2.
try sonde --version | sed 's/[0-9.]*$/X/'
try sonde prifile
try sonde nonsense
try sonde --frobnicate
try sonde run
try sonde run a.onnx b.onnx
try sonde run --iteration 5 zoo:tiny_mlp
try sonde run --iterations=five zoo:tiny_mlp
try sonde run -n -5 zoo:tiny_mlp
try sonde run -x zoo:tiny_mlp
try sonde run zoo:tiny_mlp --iterations
try sonde run zoo:tiny_mlp --print=yes
try sonde run zoo:tiny_mlp --device cuda:0
try sonde run zoo:tiny_mlp --precision int8
try sonde profile zoo:tiny_mlp -n 0
try sonde profile zoo:tiny_mlp --sort size
try sonde check
try sonde zoo save
try sonde zoo sell
for s in -1 nan inf 1e400 1e7 2s; do try sonde run zoo:tiny_mlp --duration $s; done
try sonde bench zoo:tiny_mlp -n 0
try sonde op Add --shape 2 --shape 2 --exec 0
try sonde op Add --shape 2 --shape 2 --repeat 0
try sonde op zoo:tiny_mlp
try sonde op Foo
try sonde op Relu --shape 2 --opset 99
try sonde op Relu --shape 2,2 --attr foo=1
try sonde run zoo:tiny_mlp --instances 0
try sonde bench zoo:tiny_mlp --instances 0
try sonde run zoo:tiny_mlp -r input=5:1
try sonde run zoo:tiny_mlp --max-memory 1k
