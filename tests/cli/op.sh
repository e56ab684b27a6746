# SPDX-License-Identifier: Apache-2.0
# One operator alone: described, or cut out of a model; figures are cut out, the form stays.
quick="-w 1 --exec 2 -t 1 --cpu baseline"
shape() { sed -E 's/ +[0-9]+\.[0-9]+/ N/g; s/ +/ /g'; }
sonde op Conv --shape 1,8,6,6 --shape 8,8,3,3 --const 1 --attr pads=1,1,1,1 $quick | shape
sonde op Reshape --shape 2,6 --shape i64:2 --value 1=3,4 --const 1 $quick | shape
sonde op zoo:tiny_cnn --node /fc/Gemm $quick | shape
sonde op zoo:tiny_cnn --op-type Relu $quick | shape
sonde op zoo:tiny_cnn --op-type Relu -s batch=2 -q $quick --json relu.json && grep -o '"inputs":"[^"]*"' relu.json
sonde op Add --shape 4 --shape 4 $quick --repeat 3 --json - | grep -Eo '"latency":\[([0-9.]+,){2}[0-9.]+\]' | tr -d 0-9
echo "== wrong"
try sonde op
try sonde op Conv Relu
try sonde op Konv --shape 1
try sonde op Relu
try sonde op Relu --shape 1,x
try sonde op Relu --shape=-1
try sonde op Relu --shape q7:1
try sonde op Relu --shape 1000000,1000000,1000000 2>&1 | sed 's/[0-9]* MiB/N MiB/'
try sonde op Relu --shape 1 --const 3
try sonde op Relu --shape 2 --value 0=1
try sonde op Conv --shape 1,8,6,6 --shape 8,8,3,3 --attr padding=1
try sonde op Conv --shape 1,8,6,6 --shape 8,8,3,3 --attr pads=1,2
try sonde op Conv --shape 1,8,6,6 --shape 8,7,3,3
try sonde op MatMul --shape 2,3 --shape 2,3
try sonde op zoo:tiny_cnn --node nowhere
try sonde op zoo:tiny_cnn --op-type Gelu
try sonde op zoo:tiny_cnn --node a --op-type b
try sonde op zoo:tiny_loop --op-type Loop
