# SPDX-License-Identifier: Apache-2.0
# Pruning: the table, what is left as it is, and usage that makes no sense.
try sonde sparsify zoo:tiny_cnn --ratio 0.9 --pattern 4x1 -o sparse.onnx
try sonde sparsify sparse.onnx --ratio 0
try sonde sparsify zoo:tiny_cnn --pattern 2:4 --only '/fc/*,/expand/Conv'
try sonde sparsify zoo:tiny_gpt2 --ratio 50% --global --except '*/mlp/*' | tail -n 4
try sonde sparsify zoo:tiny_mlp --pattern 1x16 --json -
ls
try sonde sparsify
try sonde sparsify a.onnx b.onnx
try sonde sparsify zoo:tiny_cnn --ratio 2
try sonde sparsify zoo:tiny_cnn --ratio ''
try sonde sparsify zoo:tiny_cnn --pattern 4*1
try sonde sparsify zoo:tiny_cnn --pattern 2:4 --ratio 0.9
try sonde sparsify zoo:tiny_cnn --only /fc/gemm
try sonde sparsify zoo:tiny_cnn --only /act/Relu
try sonde sparsify zoo:tiny_cnn -o sparse.txt
try sonde sparsify zoo:tiny_cnn --sparse-initializers
try sonde sparsify zoo:tiny_cnn --external-data
try sonde inspect zoo:tiny_cnn --inline-limit 1K
try sonde zoo --external-data
try sonde sparsify zoo:tiny_if
try sonde sparsify missing.onnx
try sonde sparsify zoo:tiny_cnn -o missing/sparse.onnx
try sonde sparsify zoo:tiny_cnn -o sparse.onnx --external-data=a/b
try sonde sparsify zoo:tiny_cnn -q -o small.onnx --inline-limit 2K
ls
