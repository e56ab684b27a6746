# SPDX-License-Identifier: Apache-2.0
# Files that cannot be written are refused before the model is even looked for: exit 2.
touch plain
mkdir folder.json
try sonde run missing.onnx -o o.foo
try sonde run missing.onnx -o missing/o.npz
try sonde run missing.onnx -o missing/o/
try sonde run missing.onnx --json missing/o
try sonde inspect missing.onnx -o y.json
try sonde inspect missing.onnx --graph x.png
try sonde inspect missing.onnx --graph missing/x.dot
try sonde profile missing.onnx -o missing/x.json
try sonde profile missing.onnx -o plain/x.json
try sonde profile missing.onnx -o folder.json
try sonde profile missing.onnx --json ''
try sonde report missing.json -o missing/x.md
try sonde report missing.json -o x.docx
try sonde diff a.json b.json --json plain/x
try sonde op Relu --shape 2 --json folder.json
try sonde bench missing.onnx -o missing/x.csv
try sonde bench missing.onnx -o x.docx
try sonde doctor --json missing/x
try sonde zoo save tiny_mlp missing/x.onnx
ls
# What is possible: standard output, a file that is there, a link, a folder that is made.
ln -s made.npz link.npz
touch old.npz
try sonde run zoo:tiny_mlp -q -o old.npz -o link.npz -o out/ --json - | cut -c1-22
try sonde run zoo:tiny_mlp -q -o out/
ls . out

# What is read is not overwritten, and no file takes two results.
sonde zoo save tiny_mlp model.onnx > /dev/null
echo /fc1/Gemm > names.txt
mkdir inputs
sonde run model.onnx -o inputs/x.npz > /dev/null
for verb in run profile inspect bench op whatif doctor; do
    try sonde $verb model.onnx --json ./model.onnx
done
try sonde sparsify model.onnx --json model.onnx
try sonde sparsify model.onnx --ratio 0.5 --except @names.txt --json names.txt
try sonde compare model.onnx model.onnx -i inputs --csv inputs/x.npz
try sonde compare model.onnx model.onnx -i x=inputs/x.npz --json inputs/../inputs/x.npz
try sonde quantize model.onnx --dynamic -o new.onnx --json ./new.onnx
try sonde profile model.onnx -n 1 -o new.csv -o new.csv
try sonde sparsify model.onnx --ratio 0.5 -q -o model.onnx
cmp names.txt - <<< /fc1/Gemm
