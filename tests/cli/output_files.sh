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
