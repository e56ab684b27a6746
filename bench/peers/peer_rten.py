# SPDX-License-Identifier: Apache-2.0
"""RTen through its own program `rten` (crate rten-cli), which prints how long each run took, to a
hundredth of a millisecond. Variants: no-optimize, prepack, mmap.

Every command starts the program: warm-up runs are those that precede the measured ones in the same
process, and are cut off. Loading is what `rten -n 0` takes beyond `rten -V`."""

import array
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import time

import peer


def narrowed(path, out):
    """A copy of a .safetensors file with its 64-bit integers as 32-bit ones, all that RTen has."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, body = json.loads(file.read(size)), file.read()
    data = b""
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        first, last = tensor["data_offsets"]
        piece = body[first:last]
        if tensor["dtype"] in ("I64", "BOOL"):
            wide = array.array("q" if tensor["dtype"] == "I64" else "B", piece)
            piece = array.array("i", wide).tobytes()
            tensor["dtype"] = "I32"
        tensor["data_offsets"] = [len(data), len(data) + len(piece)]
        data += piece
    head = json.dumps(header).encode()
    with open(out, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + data)
    return out


class Rten(peer.Driver):
    install = "cargo install rten-cli"

    def __init__(self, script):
        super().__init__(peer.Runtime(), script)
        self.program, self.warm = None, 0

    def words(self, runs, path=None):
        settings, path = self.settings, path or self.paths[0]
        inputs = path.removesuffix(".npz") + ".safetensors"
        if not os.path.exists(inputs):
            raise peer.Unsupported("inputs of this type")
        inputs = narrowed(inputs, path + ".rten.safetensors")
        switches = [f"--{option}" for option in self.options]
        return [self.program, settings["model"], "-i", inputs, "-t", settings["threads"], "-n", str(runs), *switches]

    def call(self, words):
        start = time.perf_counter_ns()
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        took = time.perf_counter_ns() - start
        if done.returncode < 0:
            raise RuntimeError(f"rten ended by signal {-done.returncode}")
        if done.returncode:
            said = (done.stderr or done.stdout).strip() or f"status {done.returncode}"
            raise peer.Unsupported(said.splitlines()[-1])
        return done.stdout, took

    def times(self, runs, path=None):
        text, _ = self.call(self.words(runs, path))
        found = re.findall(r"#\d+ - Model returned \d+ outputs? in ([0-9.]+)ms", text)
        if len(found) != runs:
            raise RuntimeError(f"rten printed {len(found)} times, not {runs}")
        return [round(float(ms) * 1e6) for ms in found]

    def load(self):
        home = os.path.expanduser("~/.cargo/bin/rten")
        self.program = shutil.which("rten") or (home if os.access(home, os.X_OK) else None)
        if not self.program:
            raise peer.Missing(self.install)
        if int(self.settings["instances"]) > 1:
            raise peer.Unsupported("its program takes one instance")
        version, start = self.call([self.program, "-V"])
        _, took = self.call([*self.words(0), "-q"])
        return f"loaded {max(0, took - start)} {version.split()[-1]}"

    def command(self, word, value):
        if word == "load":
            return self.load()
        if word == "warmup":
            self.warm += int(value)
            return "times " + " ".join(str(t) for t in self.times(int(value)))
        if word == "run":
            times, n = [], len(self.paths)
            for i, path in enumerate(self.paths):
                if runs := int(value) // n + (i < int(value) % n):
                    times += self.times(self.warm + runs, path)[self.warm:]
            return "times " + " ".join(str(t) for t in times)
        if word == "memory":  # at least Python's own, which the system counts for what Python starts
            return f"memory {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}"
        if word == "program":
            return "program " + "\t".join(self.words(1))
        if word == "outputs":
            if not self.settings["reference"]:
                return "outputs none: there is nothing to compare with"
            reference = narrowed(self.settings["reference"], self.settings["reference"] + ".rten")
            text, _ = self.call([*self.words(1), "--check-outputs", reference])
            found = re.findall(r"vs expected: max diff ([0-9.eE+-]+|NaN|inf)", text)
            wrong = re.search(r"Output .* does not match expected .*", text)
            if wrong:
                return f"outputs none: {wrong.group(0)}"
            return f"outputs difference {max(float(x) for x in found)}" if found else "outputs none: not comparable"
        raise peer.Unsupported("rten's program decodes no images" if word == "full" else word)


if __name__ == "__main__":
    peer.main(Rten)
