# SPDX-License-Identifier: Apache-2.0
# A dimension named as a sum, as exporters of decoders do, follows from its parts; what came before
# is no part of --seq-len.
shapes() { sonde run "$@" | grep -E '^(logits|present.0.key):'; }
shapes zoo:tiny_gpt2
shapes zoo:tiny_gpt2 -s past_sequence=0 -s sequence=5
shapes 'zoo:tiny_gpt2?past=3&seq=2&batch=4'
shapes zoo:tiny_gpt2 --seq-len 6
try sonde run zoo:tiny_gpt2 -s "attention_mask.1=4" -q
