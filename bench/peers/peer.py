# SPDX-License-Identifier: Apache-2.0
"""What the drivers of Python runtimes share: the protocol of docs/benchmarking.md.

A driver is a file that makes a Runtime, or a Driver of its own, and hands it to main(). It can be run by hand:

    python3 peer_onnxruntime.py              reads commands from the terminal
    python3 peer_onnxruntime.py --once LABEL MODEL.onnx INPUTS.npz [THREADS [OPTION…]]
                                             loads, runs once, prints the best class: the whole program
"""

import os
import sys
import threading
import time


class Missing(Exception):
    """The runtime is not installed; the text is the command that installs it."""


class Unsupported(Exception):
    """The runtime cannot do that with this model."""


class Runtime:
    """What a driver fills in. `open` imports the runtime and sets its version; `load`, which is timed, gets the
    path of the model, how many threads all instances have together, and options such as ["opt=off"]; `prepare`
    turns a dict of numpy arrays into whatever `run` takes; `run` is what is timed; `outputs` gives a dict of
    numpy arrays. `label` is what people typed for the model, `paths` are the files of inputs."""

    version = ""
    install = ""
    label = ""
    paths = ()

    def open(self):
        raise NotImplementedError

    def load(self, path, threads, instances, options):
        raise NotImplementedError

    def prepare(self, arrays):
        return arrays

    def run(self, instance, feed):
        raise NotImplementedError

    def outputs(self, feed):
        raise NotImplementedError


def threads_each(threads, instances):
    return max(1, threads // instances)


def read_npz(path):
    import numpy as np

    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def read_image(path, how, dtype):
    """An image as the preprocess line says: shorter side resized, centre cut out, normalised, of the input's type."""
    import numpy as np

    try:
        from PIL import Image
    except ImportError:
        raise Unsupported("decoding images needs Pillow: pip install pillow") from None
    image = Image.open(path).convert("RGB")
    scale = max(how["resize"] / min(image.size), how["width"] / image.width, how["height"] / image.height)
    wide = max(int(image.width * scale + 0.5), how["width"])
    high = max(int(image.height * scale + 0.5), how["height"])
    image = image.resize((wide, high), Image.BILINEAR)
    left, top = (wide - how["width"] + 1) // 2, (high - how["height"] + 1) // 2
    image = image.crop((left, top, left + how["width"], top + how["height"]))
    pixels = np.asarray(image, dtype=np.float32) / np.float32(255)
    pixels = (pixels - np.array(how["mean"], np.float32)) / np.array(how["std"], np.float32)
    if how["colours"] == "bgr":
        pixels = pixels[..., ::-1]
    if how["layout"] == "nchw":
        pixels = pixels.transpose(2, 0, 1)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        pixels = np.clip(np.rint(pixels.astype(np.float64)), limits.min, limits.max)
    return {how["input"]: np.ascontiguousarray(pixels[None].astype(dtype))}


def parse_preprocess(line):
    height, width, resize, layout, colours, mean, std, name = line.split("\t", 7)
    return {"height": int(height), "width": int(width), "resize": int(resize), "layout": layout,
            "colours": colours, "mean": [float(x) for x in mean.split(",")],
            "std": [float(x) for x in std.split(",")], "input": name}


def peak_memory():
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


class Driver:
    def __init__(self, runtime, script):
        self.runtime, self.script = runtime, script
        self.settings = {"model": "", "label": "", "threads": "1", "instances": "1", "reference": ""}
        self.options, self.paths, self.feeds, self.images = [], [], [], []
        self.how, self.types = None, {}

    def setting(self, word, value):
        """Whether that was a setting: those get no answer."""
        if word in self.settings:
            self.settings[word] = value
        elif word == "option":
            self.options.append(value)
        elif word == "inputs":
            self.paths.append(value)
        elif word == "forget":
            self.paths, self.feeds = [], []
        elif word == "image":
            self.images.append(value)
        elif word == "preprocess":
            self.how = parse_preprocess(value)
        else:
            return False
        return True

    def read_feeds(self):
        for path in self.paths[len(self.feeds):]:
            arrays = read_npz(path)
            self.types.update({name: array.dtype for name, array in arrays.items()})
            self.feeds.append(self.runtime.prepare(arrays))

    def timed(self, count, body):
        """Every instance runs `body` so often, at once; the answer with all their times."""
        instances = int(self.settings["instances"])
        times, failures = [[] for _ in range(instances)], []
        barrier = threading.Barrier(instances)

        def work(instance):
            clock = time.perf_counter_ns
            try:
                barrier.wait()
                for i in range(count):
                    start = clock()
                    body(instance, i)
                    times[instance].append(clock() - start)
            except Exception as error:  # told by the thread that answers
                failures.append(error)

        others = [threading.Thread(target=work, args=(i,)) for i in range(1, instances)]
        start = time.perf_counter_ns()
        for thread in others:
            thread.start()
        work(0)
        for thread in others:
            thread.join()
        wall = time.perf_counter_ns() - start
        if failures:
            raise failures[0]
        return "times " + " ".join(str(t) for each in times for t in each) + f" wall {wall}"

    def command(self, word, value):
        settings, runtime = self.settings, self.runtime
        if word == "load":
            runtime.label, runtime.paths = settings["label"], self.paths
            runtime.open()
            start = time.perf_counter_ns()
            runtime.load(settings["model"], int(settings["threads"]), int(settings["instances"]), self.options)
            return f"loaded {time.perf_counter_ns() - start} {runtime.version}"
        if word == "memory":
            return f"memory {peak_memory()}"
        if word == "program":
            words = [sys.executable, self.script, "--once", settings["label"], settings["model"], self.paths[0],
                     settings["threads"]]
            return "program " + "\t".join(words + self.options)
        self.read_feeds()
        if word in ("run", "warmup"):
            feeds = self.feeds
            return self.timed(int(value), lambda instance, i: runtime.run(instance, feeds[i % len(feeds)]))
        if word == "full":
            images, how, dtype = self.images, self.how, self.types[self.how["input"]]
            return self.timed(int(value), lambda instance, i: runtime.run(
                instance, runtime.prepare(read_image(images[i % len(images)], how, dtype))))
        if word == "outputs":
            import numpy as np

            arrays = {name: a for name, a in runtime.outputs(self.feeds[0]).items() if isinstance(a, np.ndarray)}
            np.savez(value, **{name: a.astype(str) if a.dtype == object else a for name, a in arrays.items()})
            return "outputs saved"
        return f"error '{word}' is not understood"

    def answer(self, line):
        word, _, value = line.partition(" ")
        if self.setting(word, value):
            return None
        try:
            return self.command(word, value)
        except Missing as error:
            return f"missing {error}"
        except ModuleNotFoundError as error:
            return f"missing {self.runtime.install}" if word == "load" else f"error {error}"
        except (Unsupported, NotImplementedError) as error:
            return f"unsupported {error}"
        except Exception as error:
            return f"error {type(error).__name__}: {error}"


def once(runtime, label, model, inputs, threads="1", *options):
    """The whole program: load, infer, print what is most likely."""
    import numpy as np

    runtime.label, runtime.paths = label, [inputs]
    runtime.open()
    runtime.load(model, int(threads), 1, list(options))
    for name, value in runtime.outputs(runtime.prepare(read_npz(inputs))).items():
        best = int(np.argmax(value.reshape(-1))) if value.size else -1
        print(f"{name}: {value.dtype}{list(value.shape)}, largest at {best}")


def main(runtime):
    """`runtime` is a Runtime, or a class derived from Driver."""
    script = os.path.abspath(sys.argv[0])
    if len(sys.argv) > 4 and sys.argv[1] == "--once":
        once(runtime, *sys.argv[2:])
        return
    # Libraries may print: the protocol keeps the real standard output, they get standard error.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    driver = runtime(script) if isinstance(runtime, type) else Driver(runtime, script)
    for line in sys.stdin:
        line = line.rstrip("\r\n")
        if line == "quit":
            break
        reply = driver.answer(line)
        if reply is not None:
            out.write(reply.replace("\n", " ").strip() + "\n")
            out.flush()
