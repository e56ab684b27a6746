# SPDX-License-Identifier: Apache-2.0
# Every verb has help, and its first lines say how it is called.
sonde --help
for verb in run profile report view diff compare op whatif doctor bench inspect quantize sparsify check zoo; do
    sonde "$verb" --help | head -3
done
sonde zoo --help
