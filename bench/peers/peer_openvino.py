# SPDX-License-Identifier: Apache-2.0
"""OpenVINO, CPU. It would compute in bf16 where the processor can: here f32 unless a variant says
otherwise. Variants: precision=f32, precision=bf16, precision=f16, hint=latency, hint=throughput,
static (the model's free dimensions become those of the inputs before it is compiled)."""

import peer


class OpenVino(peer.Runtime):
    install = "pip install openvino"

    def open(self):
        import openvino

        self.version = openvino.__version__.split("-")[0]
        self.core = openvino.Core()

    def load(self, path, threads, instances, options):
        precision, hint, static = "f32", "LATENCY", False
        for option in options:
            if option.startswith("precision="):
                precision = option.removeprefix("precision=")
            elif option.startswith("hint="):
                hint = option.removeprefix("hint=").upper()
            else:
                static = option == "static"
        # Streams that share a thread wait for each other for ever: each has one at least, as with the other runtimes.
        config = {"INFERENCE_NUM_THREADS": max(threads, instances), "INFERENCE_PRECISION_HINT": precision,
                  "PERFORMANCE_HINT": hint}
        if instances > 1:
            config["NUM_STREAMS"] = instances
        try:
            model = self.core.read_model(path)
            if static:
                shapes = {name: list(value.shape) for name, value in peer.read_npz(self.paths[0]).items()}
                model.reshape({i: shapes[i.any_name] for i in model.inputs if i.any_name in shapes})
            self.compiled = self.core.compile_model(model, "CPU", config)
        except RuntimeError as error:
            if "not supported" in str(error) or "OpConversionFailure" in str(error):
                raise peer.Unsupported(str(error).strip().splitlines()[-1]) from None
            raise
        self.requests = [self.compiled.create_infer_request() for _ in range(instances)]

    def run(self, instance, feed):
        return self.requests[instance].infer(feed, share_inputs=True, share_outputs=True)

    def outputs(self, feed):
        result = self.run(0, feed)
        return {name: result[port].copy() for port in self.compiled.outputs for name in port.names}


if __name__ == "__main__":
    peer.main(OpenVino())
