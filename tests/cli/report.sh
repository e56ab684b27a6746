# SPDX-License-Identifier: Apache-2.0
# Saved profiles again: sonde's own, ONNX Runtime's, PyTorch's; cut, damaged and foreign files.
cat >ort.json <<'END'
[
{"cat" : "Session","pid" :7,"tid" :9,"dur" :100,"ts" :5,"ph" : "X","name" :"session_initialization","args" : {}},
{"cat" : "Node","pid" :7,"tid" :9,"dur" :300,"ts" :1010,"ph" : "X","name" :"conv1_kernel_time","args" : {"op_name" : "Conv","provider" : "CPUExecutionProvider","input_type_shape" : [{"float":[1,3,8,8]},{"float":[4,3,1,1]}],"output_type_shape" : [{"float":[1,4,8,8]}]}},
{"cat" : "Node","pid" :7,"tid" :9,"dur" :100,"ts" :1350,"ph" : "X","name" :"relu1_kernel_time","args" : {"op_name" : "Relu","provider" : "CPUExecutionProvider","input_type_shape" : [{"float":[1,4,8,8]}],"output_type_shape" : [{"float":[1,4,8,8]}]}},
{"cat" : "Session","pid" :7,"tid" :9,"dur" :500,"ts" :1000,"ph" : "X","name" :"model_run","args" : {}}
]
END
sonde report ort.json --by-shape
cat >torch.json <<'END'
{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 5, "tid": 5, "ts": 1000.5, "dur": 1000},
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 5, "tid": 5, "ts": 1100, "dur": 400},
{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 5, "tid": 5, "ts": 1150, "dur": 300}]}
END
sonde report torch.json --sort name
sonde report torch.json -q -o torch.folded
cat torch.folded

sonde profile zoo:tiny_mlp -n 12 -q -o a.pftrace -o a.json
sonde report a.pftrace >table
sonde report a.json | cmp - table
sonde report a.pftrace -q -o again.json -o again.pftrace
cmp a.json again.json
cmp a.pftrace again.pftrace
mv a.json looks.like.pftrace
sonde report looks.like.pftrace | cmp - table
head -c 6000 a.pftrace >cut.pftrace
sonde report cut.pftrace 2>&1 | sed 's/byte [0-9]*/byte N/' | head -1
sonde report cut.pftrace -q
# A value whose life ends before it begins, behind the end of a good trace.
{ cat a.pftrace; printf '\n\t\212z\006\032\004\020\005\030\001'; } >evil.pftrace
try sonde report evil.pftrace --report memory 2>&1 | sed 's/value [0-9]*/value N/'
head -c 300 ort.json >cut.json
try sonde report cut.json
echo '{"traceEvents": []}' >other.json
try sonde report other.json
try sonde report missing.pftrace
try sonde report
try sonde report a b
try sonde report a.pftrace -q -o out.nothing 2>&1 | cut -c1-40
try sonde report a.pftrace --level 3
