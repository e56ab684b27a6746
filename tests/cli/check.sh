# SPDX-License-Identifier: Apache-2.0
# Test-data folders: what passes, what fails, what is skipped, and the exit status of each.
make_case() { # NAME: tiny_mlp with a zero input of shape [1, 16], a TensorProto written by hand
    mkdir -p "cases/$1/test_data_set_0"
    sonde zoo save tiny_mlp "cases/$1/model.onnx"
    { printf '\010\001\010\020\020\001\112\100' && head -c 64 /dev/zero; } >"cases/$1/test_data_set_0/input_0.pb"
    sonde run "cases/$1/model.onnx" -q -r input=0:0 -o "cases/$1/test_data_set_0/"
}
make_case first
make_case second
try sonde check cases
try sonde check -v cases/first cases/second
sonde run cases/second/model.onnx -q -r input=1:1 -o cases/second/test_data_set_0/
try sonde check cases | sed 's/: [0-9]* of .*/: …/'
try sonde check cases --filter first
try sonde check cases --rtol 1000 --atol 1000
sed -i 's/Softmax/Hardmix/g' cases/second/model.onnx
try sonde check -q cases
try sonde check -q --strict cases
rm -r cases/first/test_data_set_0
try sonde check cases/first
