#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `sonde history` takes with many entries.

usage: bench/history.py [SONDE] [ENTRIES]      (default: build/release/sonde 100000)
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time

program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release/sonde")
count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
VERBS = (["list"], ["list", "--model", "zoo:*", "--since", "1d"], ["list", "--commit", "abc"], ["list", "--all"],
         ["list", "--all", "--json", "-"], ["show", "@0"], ["show", "@-1000", "-q"], ["trend"])

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "h.db")
    subprocess.run([program, "profile", "zoo:tiny_cnn", "-n", "100", "-q", f"--save={path}"], check=True)
    db = sqlite3.connect(path)
    columns = ", ".join(c[1] for c in db.execute("PRAGMA table_info(entry)") if c[1] not in ("id", "at"))
    db.execute(f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1}) "
               f"INSERT INTO entry (at, {columns}) SELECT at - i * 1000, {columns} FROM n, entry WHERE entry.id = 1")
    db.commit()
    db.close()
    print(f"{count} entries, {os.path.getsize(path) / 2**20:.1f} MiB")
    for verb in VERBS:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([program, "history", *verb, "--db", path], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
        print(f"  history {' '.join(verb):42} {sorted(times)[2] * 1000:7.1f} ms")
