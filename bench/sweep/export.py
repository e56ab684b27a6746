#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports one architecture of the catalogue: builds it with random weights, and writes model.onnx and inputs.npz.

usage: export.py NAME FOLDER        (python with the packages of requirements.txt)

Nothing is downloaded. The same row gives the same weights and inputs: all random numbers come from one seed. Values
that a network starts with as a constant (scales of 1, biases of 0, layer scales of 1e-6) get random ones, and batch
normalisation gets statistics of a random batch, so that nothing folds away that would stay in a trained network."""

import inspect
import os
import pathlib
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import numpy as np
import torch
from torch import nn

import catalogue

SEED = 20
OPSET = 18
TYPES = {"ids": torch.int64, "ones": torch.int64}


def tensors(value):
    """The float and integer tensors in whatever a network returned, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict) or hasattr(value, "keys"):
        value = [value[key] for key in value.keys()]
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in tensors(part)]
    return []


class Wrapped(nn.Module):
    """A network that takes its inputs in order and returns a tuple of tensors."""

    def __init__(self, net, names=None, most=4):
        super().__init__()
        self.net, self.names, self.most = net, names, most

    def forward(self, *inputs):
        result = self.net(*inputs) if self.names is None else self.net(**dict(zip(self.names, inputs)))
        found = tensors(result)[:self.most]
        return found[0] if len(found) == 1 else tuple(found)


class Head(nn.Module):
    """A detector of torchvision without the selection of boxes: what the head says about each place."""

    def __init__(self, net):
        super().__init__()
        self.backbone, self.head = net.backbone, net.head

    def forward(self, image):
        return self.head(list(self.backbone(image).values()))


class Flow(nn.Module):
    """The last of the flows that a network refines in four steps."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, first, second):
        return self.net(first, second, num_flow_updates=4)[-1]


def from_torchvision(name, options, _):
    import torchvision

    part = options.pop("part", None)
    known = inspect.signature(torchvision.models.get_model_builder(name)).parameters
    if "weights_backbone" in known:
        options["weights_backbone"] = None
    net = torchvision.models.get_model(name, weights=None, **options)
    if part == "pooled":  # for images smaller than it was made for
        net.avgpool = nn.AdaptiveAvgPool3d(1)
    return {"head": Head, "flow": Flow}.get(part, lambda whole: whole)(net)


def from_timm(name, options, _):
    import timm

    return timm.create_model(name, pretrained=False, exportable=True, **options)


def from_transformers(name, options, exporter):
    import transformers

    part = options.pop("part", None)
    kind = getattr(transformers, name)
    config = kind.config_class(**options)
    config._attn_implementation = "eager" if exporter == "script" else "sdpa"
    try:
        net = kind(config)
    except ValueError:  # a network that knows no fused attention
        config._attn_implementation = "eager"
        net = kind(config)
    if part:
        net = getattr(net, f"get_{part}")() if hasattr(net, f"get_{part}") else getattr(net, part)
    return net


def own(name, options, _):
    import nets_images
    import nets_sequences
    import nets_sound

    return next(getattr(m, name) for m in (nets_images, nets_sequences, nets_sound) if hasattr(m, name))(**options)


SOURCES = {"torchvision": from_torchvision, "timm": from_timm, "transformers": from_transformers, "own": own}


def make_inputs(case):
    """The input tensors, from a generator of their own."""
    random = torch.Generator().manual_seed(SEED + 1)
    made = []
    for given in case.inputs:
        if given.fill == "ids":
            made.append(torch.randint(0, given.high, given.shape, generator=random))
        elif given.fill == "ones":
            made.append(torch.ones(given.shape, dtype=torch.int64))
        else:
            fill = torch.rand if given.fill == "uniform" else torch.randn
            made.append(fill(given.shape, generator=random))
    return tuple(made)


def enliven(net):
    """Random numbers in place of tensors that start as one constant."""
    random = torch.Generator().manual_seed(SEED + 2)
    for parameter in net.parameters():
        if not parameter.is_floating_point() or not parameter.numel():
            continue
        if bool((parameter != parameter.flatten()[0]).any()):
            continue
        start = float(parameter.flatten()[0])
        noise = torch.rand(parameter.shape, generator=random)
        if start == 0:
            parameter.copy_((noise - 0.5) * 0.1)
        elif abs(start) < 0.01:
            parameter.copy_(0.1 + 0.2 * noise)
        else:
            parameter.copy_(start * (0.8 + 0.4 * noise))


def calibrate(net, inputs):
    """Batch normalisation learns the statistics of a batch of two; where that fails it keeps 0 and 1."""
    norms = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is not None]
    for norm in norms:
        norm.momentum, norm.training = 1.0, True
    try:
        if norms:
            random = torch.Generator().manual_seed(SEED + 3)
            batch = [torch.cat([t, t + torch.randn(t.shape, generator=random)]) if t.is_floating_point() else
                     torch.cat([t, t]) for t in inputs]
            net(*batch)
            for norm in norms:  # channels that hardly vary would magnify rounding errors
                norm.running_var += norm.running_var.mean() * 0.5
    except (RuntimeError, ValueError):
        for norm in norms:
            norm.reset_running_stats()
    net.eval()


def build(case):
    where, name = case.source.split(":", 1)
    torch.manual_seed(SEED)
    net = SOURCES[where](name, dict(case.options), case.exporter).eval()
    inputs = make_inputs(case)
    names = [given.name for given in case.inputs] if where == "transformers" else None
    whole = Wrapped(net, names).eval()
    with torch.no_grad():
        enliven(net)
        calibrate(whole, inputs)
        outputs = whole(*inputs)
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    if not all(bool(t.isfinite().all()) for t in outputs):
        raise ValueError("its outputs are not finite")
    return whole, inputs, len(outputs)


def main():
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    case = next(case for case in catalogue.cases() if case.name == name)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    net, inputs, outputs = build(case)
    names = [given.name for given in case.inputs]
    options = {"input_names": names, "output_names": [f"output{k}" for k in range(outputs)], "opset_version": OPSET}
    with torch.no_grad():
        if case.exporter == "dynamo":
            torch.onnx.export(net, inputs, folder / "model.onnx", dynamo=True, external_data=False, verbose=False,
                              **options)
        else:
            torch.onnx.export(net, inputs, str(folder / "model.onnx"), dynamo=False, **options)
    np.savez(folder / "inputs.npz", **{n: t.numpy() for n, t in zip(names, inputs)})


if __name__ == "__main__":
    main()
