# SPDX-License-Identifier: Apache-2.0
# Machines that are not here: what the doctor says of them, and what is bound. Their CPUs have numbers that no machine
# has that runs these tests, so nothing is really bound.
put() { mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" >"$1"; }
machine() { # sockets of two cores with two threads
  local cpu=$PWD/root/sys/devices/system/cpu node=$PWD/root/sys/devices/system/node s c k
  for ((s = 0; s < $1; s++)); do
    for ((k = 0; k < 4; k++)); do
      c=$((8000 + s * 4 + k))
      put "$cpu/cpu$c/topology/physical_package_id" "$s"
      put "$cpu/cpu$c/topology/thread_siblings_list" "$((c / 2 * 2))-$((c / 2 * 2 + 1))"
    done
    put "$node/node$s/cpulist" "$((8000 + s * 4))-$((8003 + s * 4))"
    put "$node/node$s/meminfo" "Node $s MemTotal: 33554432 kB"
  done
  put "$cpu/online" "8000-$((7999 + 4 * $1))"
  put "$node/online" "0-$(($1 - 1))"
  put "root/proc/self/status" "Cpus_allowed_list: ${2:-8000-$((7999 + 4 * $1))}"
  put "root/sys/kernel/mm/transparent_hugepage/enabled" 'always madvise [never]'
  export SONDE_SYSTEM_ROOT=$PWD/root
}
doctor() { sonde doctor -t "$@" 2>&1 | grep -E -A2 '^\[[a-z]+\] (pages|sockets|binding|placement|siblings): ' | grep -vE '^\[[a-z]+\] (cores|clock|instructions|memory|counters|noise|peaks|build): |^--$' | sed 's/may use CPUs .*/may use CPUs HERE/'; }
echo "== two sockets"
machine 2
doctor 8
echo "== bound to one"
doctor 2 --numa 1
echo "== with a mask"
machine 2 8004-8007
doctor 2
echo "== nodes that cannot be used"
try sonde run zoo:tiny_cnn -q --numa 2
try sonde run zoo:tiny_cnn -q --numa 0
try sonde run zoo:tiny_cnn -q --numa both
try sonde run zoo:tiny_cnn -q --numa ''
SONDE_NUMA=7 try sonde run zoo:tiny_cnn -q -n 1
echo "== instances"
machine 2
sonde run zoo:tiny_cnn --numa auto --instances 3 -n 2 2>&1 | grep -E '^  instance|warning|instances' | sed -E 's/: [0-9.]+ samples.*/: N samples/'
sonde run zoo:tiny_cnn --numa auto --instances 3 -n 2 -t 6 2>&1 | grep -E '^  instance'
sonde run zoo:tiny_cnn --numa off --instances 3 -n 2 -t 6 2>&1 | grep -E '^  instance|instances' | sed -E 's/: [0-9.]+ samples.*/: N samples/'
echo "== as JSON"
sonde doctor --json d.json -q >/dev/null && grep -oE '"sockets":2,"memory_nodes":2,"physical_cores":4,"usable_physical_cores":4,"threads_per_core":2' d.json
grep -oE '"nodes":\[\{"id":0,"socket":0,"cores":2,"usable_cores":2,"cpus":4,"usable_cpus":4,"memory_bytes":34359738368,"free_bytes":0\}' d.json
echo "== no files at all"
SONDE_SYSTEM_ROOT=$PWD/nothing sonde doctor 2>&1 | grep -A1 '] sockets'
