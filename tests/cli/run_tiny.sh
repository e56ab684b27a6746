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
sonde run zoo:tiny_mlp -n 3 | tail -1 | sed 's/[0-9.]* [nµm]*s/T ms/; s/[0-9][0-9.]*\.[0-9]*/T/g'
sonde run zoo:tiny_mlp --json - | sed 's/,"threads.*"inputs"/,"inputs"/; s/,"min".*//'
sonde zoo save tiny_cnn cnn.onnx
sonde run cnn.onnx | head -1
sonde run cnn.onnx --no-mmap -t 1 --cpu baseline | head -1
# -n 0 runs nothing and says what a run would take and give; --duration runs for that long, once at least.
try sonde run zoo:tiny_mlp -n 0
sonde run zoo:tiny_mlp -n 0 -w 5 --json - | sed 's/.*"iterations"/"iterations"/; s/"inputs".*"outputs"/"outputs"/'
sonde run zoo:tiny_mlp -n 0 -p | tail -1
try sonde run zoo:tiny_mlp -n 0 -o none.npz
try sonde run zoo:tiny_mlp -n 0 --check out.npz
sonde run zoo:tiny_mlp --duration 0 --json - | grep -o '"iterations":[0-9]*'
sonde run zoo:tiny_mlp --duration 0.5 | grep -c 'runs: mean'
sonde run zoo:tiny_mlp --duration 60 -n 2 | tail -1 | cut -d: -f1
# A folder of images: each is run, and what comes out stands under its name.
mkdir photos
for image in b a; do
  { printf 'P6\n8 8\n255\n'; head -c 192 /dev/zero | tr '\0' "$image"; } >photos/$image.ppm
done
sonde zoo save regnet_x_400mf net.onnx
sonde run net.onnx -i photos --top 1 | sed 's/[0-9.]* %  class [0-9]*/P %  class C/'
sonde run net.onnx -i photos/ -q -o both.npz
try sonde run net.onnx -i photos/ --check both.npz | tail -1
sonde run net.onnx -i photos -n 5 --json - | grep -o '"iterations":[0-9]*\|"name":"[^"]*"'
sonde profile net.onnx -i photos -n 3 -w 0 | tail -1 | cut -d';' -f1
try sonde run net.onnx -i photos --batch-size 2
try sonde run net.onnx -i .
# A cache folder that is refused costs a warning, and with -q nothing.
mkdir open && chmod 777 open
sonde run zoo:tiny_mlp --weights-cache=open --tune=open -n 0 2>&1 | grep -c 'other users can write to it'
sonde run zoo:tiny_mlp --weights-cache=open --tune=open -q
