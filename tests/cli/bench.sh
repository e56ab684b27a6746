# SPDX-License-Identifier: Apache-2.0
# Comparing runtimes. Figures are cut out, and what a machine may lack is not asked for: there is no Python at that
# path. Nothing is left in the temporary folder.
mkdir tmp
export TMPDIR=$PWD/tmp
plain() {
    sed -E 's/; [^;]*$//; s/[0-9][0-9.,]*/#/g; s/…/ to /g; s/\((# to #|unclear)\)/(interval)/g; s/ +/ /g; s/(KiB|MiB)/B/; s/, (n|µ|m)s/, T/; s/ $//'
}
try sonde bench zoo:tiny_mlp --against onnxruntime,sonde:no-optimize --python /nonexistent/python \
    -n 4 --rounds 2 -t 1 --no-program | plain
try sonde bench zoo:tiny_mlp -n 4 --rounds 2 --min-runs 2 --no-inference -o out.csv | sed -n 1p
cut -d, -f1-8 out.csv | plain
try sonde bench zoo:tiny_mlp --top 1 -n 1 --no-program | tail -2 | plain
ls tmp

try sonde bench
try sonde bench zoo:tiny_mpl
try sonde bench zoo:tiny_mlp missing.onnx --no-program -n 1 -q
try sonde bench zoo:tiny_mlp --against onnxruntme
try sonde bench zoo:tiny_mlp --against nothing
try sonde bench zoo:tiny_mlp --against onnxruntime:opt=fast
try sonde bench zoo:tiny_mlp --against sonde:cpu=
try sonde bench zoo:tiny_mlp --peer mine
try sonde bench zoo:tiny_mlp --batch-size 2,many
try sonde bench zoo:tiny_mlp -n 0
try sonde bench zoo:tiny_mlp --no-program --no-inference
try sonde bench zoo:tiny_mlp -o out.xlsx
ls tmp
