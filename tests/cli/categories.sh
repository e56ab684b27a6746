# SPDX-License-Identifier: Apache-2.0
# Traces of some categories: only their spans are written, the table has all, readers are told.
sonde profile zoo:tiny_mlp -n 10 -w 2 -o some.json -o some.pftrace --categories operator,iteration | head -1 |
    sed 's/ in [0-9.]*[nµm]*s//'
grep -o '"cat":"[a-z]*"' some.json | sort | uniq -c
sonde report some.pftrace | grep -v '^$' | sed 's/ in [0-9.]*[nµm]*s//' | head -1
sonde report some.json -q -o fewer.json --categories operator
sonde report fewer.json
try sonde report some.json -q -o none.json --categories thread,user
try sonde report some.json --categories ops
try sonde profile zoo:tiny_mlp --categories operator,
