#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classifies generated images on the actors of Ray Data.

    python ray_batch.py --actors 4 --images 10000 --profile-to traces

Needs sonde and Ray: pip install 'ray[data]'. Without --address it starts Ray on this machine, for itself only. Image i is
made from the random seed i, so every run classifies the same images. If a worker is killed, Ray starts another one and
repeats its batches: the results are the same.
"""

import argparse
import os
import sys
import tempfile
import time

import numpy as np

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import sonde  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actors", type=int, default=2, help="processes that run the model (2)")
    parser.add_argument("--images", type=int, default=10000, help="how many (10000)")
    parser.add_argument("--model", default="zoo:tiny_resnet", help="an image classifier: a path or a built-in model")
    parser.add_argument("--batch", type=int, default=64, help="images of a batch (64)")
    parser.add_argument("--address", help="of a Ray cluster; the default: Ray on this machine")
    parser.add_argument("--profile-to", metavar="DIR", help="folder for a trace of every worker")
    parser.add_argument("--check", action="store_true",
                        help="compare with one process without Ray, bit for bit; images are then run one by one")
    args = parser.parse_args()
    if args.actors < 1 or args.images < 1 or args.batch < 1:
        parser.error("--actors, --images and --batch are numbers from 1")
    return args


class Images:
    """The images of a batch of numbers: bytes, as a decoder would give them."""

    def __init__(self, shape):
        self.shape = shape

    def __call__(self, batch):
        pixels = [np.random.default_rng(int(i)).integers(0, 256, self.shape, np.uint8) for i in batch["id"]]
        return {"id": batch["id"], "pixels": np.stack(pixels)}


def scale(batch):
    return {"image": batch["pixels"].astype(np.float32) / 127.5 - 1}


def classify(results):
    (scores,) = results.values()
    return {"class": scores.argmax(axis=1), "score": scores.max(axis=1)}


def start(args):
    """Ray on this machine needs one CPU more than the actors: something has to make the images."""
    import ray

    if args.address:
        ray.init(address=args.address)
        return None
    folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
    ray.init(num_cpus=args.actors + 1, include_dashboard=False, log_to_driver=False, _temp_dir=folder.name)
    return folder


def summarise(folder):
    """One file of all traces, or what each of them has."""
    if hasattr(sonde, "merge"):
        merged = os.path.join(folder, "fleet.pftrace")
        sonde.merge([folder], merged)
        print(f"profile of all workers: {merged}; open it at ui.perfetto.dev, or run: sonde report --by worker {merged}")
        return
    for name in sorted(os.listdir(folder)):
        if name.endswith(".pftrace"):
            figures = sonde.load_profile(os.path.join(folder, name)).summary()
            print(f"{name}: {figures['iterations']} runs, median {figures['p50_ns'] / 1e6:.2f} ms")


def main():
    args = parse()
    with sonde.InferenceSession(args.model) as session:
        if len(session.get_inputs()) != 1 or len(session.get_inputs()[0].shape or []) != 4:
            sys.exit(f"ray_batch.py: '{args.model}' does not take images; expected one input of 4 dimensions")
        shape = session.random_inputs(sizes={"batch": 1})[session.input(0).name].shape[1:]

    if not args.address:  # listens on the loopback interface only
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    import ray

    from sonde.ray import map_batches

    folder = start(args)
    try:
        numbers = ray.data.range(args.images, override_num_blocks=max(8, 4 * args.actors))
        images = numbers.map_batches(Images(shape), batch_size=args.batch)
        results = map_batches(images, args.model, actors=args.actors, batch_size=args.batch, inputs="image", keep=["id"],
                              pre=scale, post=classify, rows=1 if args.check else args.batch, profile_to=args.profile_to)
        begin = time.perf_counter()
        rows = results.take_all()
        took = time.perf_counter() - begin
    finally:
        ray.shutdown()
        if folder is not None:
            folder.cleanup()
    if [row["id"] for row in rows] != list(range(args.images)):
        sys.exit("ray_batch.py: results are missing, repeated or in another order")
    print(f"{args.images} images on {args.actors} actors in {took:.2f} s: {args.images / took:,.0f} images/s, start included")
    if args.profile_to:
        summarise(args.profile_to)
    if args.check:
        check(args, Images(shape), rows)


def check(args, images, rows):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1
    with sonde.InferenceSession(args.model, options) as session:
        name = session.input(0).name
        for i, row in enumerate(rows):
            image = scale(images({"id": [i]}))["image"]
            expected = classify(dict(enumerate(session.run(None, {name: image}))))
            if row["class"] != expected["class"][0] or row["score"] != expected["score"][0]:
                sys.exit(f"ray_batch.py: image {i} is of class {row['class']}, in one process of {expected['class'][0]}")
    print(f"all {args.images} results are equal to one process")


if __name__ == "__main__":
    main()
