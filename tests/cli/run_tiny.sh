# SPDX-License-Identifier: Apache-2.0
# Outputs of small models: types and shapes; sizes from -s, queries and options; saving and checking.
sonde run zoo:tiny_mlp | head -1
sonde run zoo:tiny_mlp?batch=3 | head -1
sonde run zoo:tiny_mlp -s batch=4 | head -1
sonde run zoo:tiny_mlp --batch-size 5 | head -1
sonde run zoo:tiny_attention?seq=6 | head -1
sonde run zoo:tiny_attention --seq_len 7 -s input_ids.batch=2 -s attention_mask.0=2 | head -1
sonde run zoo:tiny_cnn --top 2 | wc -l
sonde run zoo:tiny_text --print
sonde run zoo:tiny_sequence -r input=1:1
sonde run zoo:tiny_if -r condition=0:0 -r input=0:0 -q
sonde run zoo:tiny_loop -r steps=2:2 | grep ':'
sonde run zoo:tiny_dynamic -r input=4:4
try sonde run zoo:tiny_mlp -s batch=2 -q -o out.npz -o out.safetensors -o data/
ls out.npz out.safetensors data
try sonde run zoo:tiny_mlp -s batch=2 -q --check out.npz
try sonde run zoo:tiny_mlp -s batch=2 --check data | tail -1
try sonde run zoo:tiny_mlp -s batch=2 -q --no-optimize --no-prepack --check out.safetensors
try sonde run zoo:tiny_mlp -s batch=2 -q --seed 1 --check out.npz 2>&1 | cut -c1-24
sonde run zoo:tiny_mlp -n 3 | tail -1 | sed 's/[0-9.]* ms/T ms/; s/[0-9][0-9.]*\.[0-9]*/T/g'
sonde run zoo:tiny_mlp --json - | sed 's/,"threads.*"inputs"/,"inputs"/; s/,"min".*//'
sonde zoo save tiny_cnn cnn.onnx
sonde run cnn.onnx | head -1
sonde run cnn.onnx --no-mmap -t 1 --cpu baseline | head -1
