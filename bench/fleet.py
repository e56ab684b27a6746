#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Ray costs: images per second of actors of Ray Data and of as many independent processes, in turns; and the memory
of actors that share packed weights.

usage: fleet.py [--actors 2] [--rounds 5] [--images 1024] [--batch 64] [--model zoo:regnet_x_400mf]
                [--memory-model zoo:resnet50]
(with sonde and ray importable)

Both sides run the same batches with the same worker, one thread each, from images that are made before; a rate counts what
is finished while all workers are busy, from the moment the last one has done its first batch to the moment the first one
begins to have no more. Where there are only as many cores as actors, Ray's own processes take from them what they need; so
the rate for each second of the workers' own processor time is compared, too: it shows what the adapter costs. Memory is the proportional set size (PSS): pages of several processes count in equal parts."""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DATA_DISABLE_PROGRESS_BARS="1", RAY_AUTH_MODE="disabled",
                  RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")  # the last one keeps Ray on the loopback interface

import numpy as np  # noqa: E402

import sonde  # noqa: E402
import sonde.zoo  # noqa: E402
from sonde._worker import Job, Worker  # noqa: E402

class Stamp:
    """After the model: who did the batch, when it was done, and the processor time of the worker up to then."""

    def __call__(self, results):
        rows = len(next(iter(results.values())))
        return {"worker": np.full(rows, os.getpid()), "done": np.full(rows, time.time()),
                "spent": np.full(rows, time.process_time())}


def job(model, weights):
    return {"model": model, "inputs": "image", "post": Stamp(), "share_weights": weights}


def rates(stamps):
    """Rows a second while all workers are busy, and rows for each second of processor time; `stamps`: (worker, time,
    processor time, rows) of every batch."""
    firsts, lasts = {}, {}
    for worker, done, _, _ in stamps:
        firsts[worker] = min(firsts.get(worker, done), done)
        lasts[worker] = max(lasts.get(worker, done), done)
    begin, end = max(firsts.values()), min(lasts.values())
    if end <= begin:
        sys.exit("fleet.py: the workers were not busy at the same time; use more --images")
    # A batch counts with the share of it that lies in between.
    before, rows, later, spent = {}, 0.0, 0, 0.0
    for worker, done, used, count in sorted(stamps, key=lambda stamp: stamp[1]):
        since = before.get(worker)
        before[worker] = done, used
        if since is not None and done > since[0]:
            rows += count * max(0.0, min(done, end) - max(since[0], begin)) / (done - since[0])
            later += count
            spent += used - since[1]
    return rows / (end - begin), later / spent


# ---------------------------------------------------------------- independent processes
def process(arguments, images, batch, start, results):
    worker = Worker(Job(**arguments))
    worker({"image": images[:batch]})
    start.wait()
    stamps = []
    for begin in range(0, len(images), batch):
        done = worker({"image": images[begin : begin + batch]})
        stamps.append((int(done["worker"][0]), float(done["done"][0]), float(done["spent"][0]), len(done["done"])))
    results.put(stamps)


def independent(actors, arguments, images, batch):
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(actors), context.Queue()
    started = [context.Process(target=process, args=(arguments, part, batch, start, results))
               for part in np.array_split(images, actors)]
    for one in started:
        one.start()
    stamps = [stamp for _ in started for stamp in results.get()]
    for one in started:
        one.join()
    return rates(stamps)


# ---------------------------------------------------------------- Ray
def in_ray(actors, arguments, dataset, batch):
    import sonde.ray

    rest = {name: value for name, value in arguments.items() if name != "model"}
    made = sonde.ray.map_batches(dataset, arguments["model"], actors=actors, batch_size=batch, **rest)
    stamps = {}
    for row in made.take_all():
        key = (row["worker"], row["done"], row["spent"])
        stamps[key] = stamps.get(key, 0) + 1
    return rates([(*key, count) for key, count in stamps.items()])


def memory(model, weights):
    """Megabytes of one and of four actors with a model, less what they need without."""
    import ray

    @ray.remote(num_cpus=0.1)
    class Actor:
        def pss(self):
            with open("/proc/self/smaps_rollup") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024

        def load(self, path):
            import sonde.ray

            self.made = sonde.ray.Predictor(path, share_weights=weights)
            self.made(dict(self.made._worker.session.random_inputs(seed=1)))

    actors = [Actor.remote() for _ in range(4)]
    ask = lambda: sum(ray.get([actor.pss.remote() for actor in actors]))  # noqa: E731
    ray.get([actor.load.remote("zoo:tiny_mlp") for actor in actors])  # what any model needs
    empty = ask()
    ray.get(actors[0].load.remote(model))
    one = ask() - empty
    ray.get([actor.load.remote(model) for actor in actors[1:]])
    four = ask() - empty
    for actor in actors:
        ray.kill(actor)
    return one, four


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--model", default="zoo:regnet_x_400mf")
    parser.add_argument("--memory-model", default="zoo:resnet50")
    args = parser.parse_args()
    import ray
    import ray.data

    with tempfile.TemporaryDirectory(prefix="fleet-", ignore_cleanup_errors=True) as folder:
        def saved(model):
            if not model.startswith("zoo:"):
                return model
            path = os.path.join(folder, model[4:] + ".onnx")
            if not os.path.exists(path):
                sonde.zoo.save(model[4:], path)
            return path

        weights = os.path.join(folder, "weights")
        arguments = job(saved(args.model), weights)
        with sonde.InferenceSession(arguments["model"]) as session:
            shape = session.random_inputs(sizes={"batch": 1})[session.input(0).name].shape[1:]
        images = np.random.default_rng(1).random((args.images, *shape), np.float32)
        # Room for the copies the dataset makes: a store that spills to disk would be measured with it.
        ray.init(num_cpus=args.actors + 2, include_dashboard=False, log_to_driver=False, _temp_dir=os.path.join(folder, "r"),
                 object_store_memory=4 * images.nbytes + 2**28)
        parts = np.array_split(images, args.images // args.batch)
        dataset = ray.data.from_numpy(parts).rename_columns({"data": "image"}).materialize()
        ratios, efforts = [], []
        for turn in range(args.rounds):
            alone = independent(args.actors, arguments, images, args.batch)
            fleet = in_ray(args.actors, arguments, dataset, args.batch)
            ratios.append(fleet[0] / alone[0])
            efforts.append(fleet[1] / alone[1])
            print(f"round {turn + 1}: {args.actors} processes {alone[0]:.1f}/s, {args.actors} actors {fleet[0]:.1f}/s, "
                  f"ratio {ratios[-1]:.3f}, for each second of their processor time {efforts[-1]:.3f}", flush=True)
        for name, values in ("in time", ratios), ("in the workers' processor time", efforts):
            print(f"{args.model}: median ratio {name} {statistics.median(values):.3f} [{min(values):.3f}, {max(values):.3f}]")
        one, four = memory(saved(args.memory_model), weights)
        print(f"{args.memory_model}: one actor {one:.1f} MB, four actors {four:.1f} MB, ratio {four / one:.2f}")
        ray.shutdown()


if __name__ == "__main__":
    main()
