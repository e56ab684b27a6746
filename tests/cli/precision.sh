# SPDX-License-Identifier: Apache-2.0
# The type in which weights are packed: what is accepted, where it shows, and what it saves.
packed() {
    sonde inspect zoo:tiny_resnet -q --json - "$@" | grep -oE '"packed":[0-9]+' | cut -d: -f2
}
whole=$(packed)
for p in file f32 fp32; do [ "$(packed --precision $p)" = "$whole" ] && echo "$p: the same"; done
for p in bf16 f16 fp16; do [ "$(packed --precision $p)" -le $((whole / 2 + whole / 16)) ] && echo "$p: half"; done
# bf16 where the CPU is made for it
case $(packed --precision auto) in
"$whole" | "$(packed --precision bf16)") echo "auto: one of them" ;;
esac
[ "$(packed --precision f16 --no-prepack)" = 0 ] && echo "no-prepack: nothing"

sonde inspect zoo:tiny_mlp --precision fp16 | grep precision
sonde inspect zoo:tiny_mlp | grep -c precision
sonde inspect zoo:tiny_mlp -q --json - | grep -o '"precision":"[a-z0-9]*"'
sonde profile zoo:tiny_mlp -n 2 -q --precision bf16 --json - | grep -o '"precision":"[a-z0-9]*"'
sonde profile zoo:tiny_mlp -n 2 -q --precision f16 -o mlp.pftrace -o mlp.json -o mlp.md
grep -o 'precision: [a-z0-9]*' mlp.md
sonde report mlp.pftrace -q --json - | grep -o '"precision":"[a-z0-9]*"'
sonde report mlp.json -q --json - | grep -o '"precision":"[a-z0-9]*"'
sonde bench zoo:tiny_mlp --against sonde:precision=f16 -n 2 --rounds 1 -t 1 --no-program | grep -o 'sonde:precision=f16' | sort -u
sonde bench zoo:tiny_mlp --precision fp32,f16 -n 2 --rounds 1 -t 1 --no-program | grep -o 'sonde:precision=f[0-9]*' | sort -u
sonde bench zoo:tiny_mlp --precision f16 -n 2 --rounds 1 -t 1 --no-program | grep -o 'sonde:precision=f[0-9]*' | sort -u

try sonde run zoo:tiny_mlp --precision int8
try sonde run zoo:tiny_mlp --precision f32,f16
try sonde bench zoo:tiny_mlp --precision f32,int8
try sonde bench zoo:tiny_mlp --precision F16
try sonde bench zoo:tiny_mlp --against sonde:precision=int8
