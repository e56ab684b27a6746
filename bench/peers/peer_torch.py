# SPDX-License-Identifier: Apache-2.0
"""PyTorch, eager, or compiled with the variant `compile` (its first inference compiles, which can take
longer than the bench waits: --timeout).

PyTorch reads no ONNX files. A built-in model whose name torchvision knows is built by torchvision and gets
the weights of the ONNX file, which carry the same names; anything else needs onnx2torch."""

import peer

INSTALL = "pip install torch torchvision onnx onnx2torch"


def from_torchvision(torchvision, name, weights):
    """torchvision's model of that name with these weights, or None when it has none or they do not fit."""
    import torch

    try:
        model = torchvision.models.get_model(name, weights=None)
    except ValueError:
        return None
    own = model.state_dict()
    wanted = {key for key in own if not key.endswith("num_batches_tracked")}
    if not wanted <= set(weights) or any(tuple(own[key].shape) != weights[key].shape for key in wanted):
        return None
    model.load_state_dict({key: torch.from_numpy(weights[key].copy()) for key in wanted}, strict=False)
    return model


def from_onnx(proto):
    try:
        from onnx2torch import convert
    except ImportError:
        raise peer.Unsupported("PyTorch reads no ONNX files: pip install onnx2torch") from None
    try:
        return convert(proto)
    except NotImplementedError as error:
        raise peer.Unsupported(f"onnx2torch: {error}") from None


class Torch(peer.Runtime):
    install = INSTALL

    def open(self):
        import onnx
        import torch

        self.torch, self.onnx, self.version = torch, onnx, torch.__version__
        try:
            import torchvision

            self.torchvision = torchvision
        except ImportError:
            self.torchvision = None

    def load(self, path, threads, instances, options):
        torch = self.torch
        torch.set_num_threads(peer.threads_each(threads, instances))
        proto = self.onnx.load(path)
        weights = {w.name: self.onnx.numpy_helper.to_array(w) for w in proto.graph.initializer}
        self.inputs = [i.name for i in proto.graph.input if i.name not in weights]
        self.names = [o.name for o in proto.graph.output]
        name = self.label.removeprefix("zoo:").partition("?")[0]
        model = None
        if self.torchvision and self.label.startswith("zoo:"):
            model = from_torchvision(self.torchvision, name, weights)
        model = (from_onnx(proto) if model is None else model).eval()
        self.model = torch.compile(model) if "compile" in options else model

    def prepare(self, arrays):
        return [self.torch.from_numpy(arrays[name]) for name in self.inputs if name in arrays]

    def run(self, instance, feed):
        with self.torch.inference_mode():
            return self.model(*feed)

    def outputs(self, feed):
        result = self.run(0, feed)
        values = result if isinstance(result, (tuple, list)) else [result]
        return {name: value.numpy() for name, value in zip(self.names, values)}


if __name__ == "__main__":
    peer.main(Torch())
