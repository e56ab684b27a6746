# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime, CPU. Variants: opt=off, opt=basic, opt=extended, opt=all (the default)."""

import peer


class OnnxRuntime(peer.Runtime):
    install = "pip install onnxruntime"

    def open(self):
        import onnxruntime

        self.ort, self.version = onnxruntime, onnxruntime.__version__

    def load(self, path, threads, instances, options):
        ort = self.ort
        levels = ort.GraphOptimizationLevel
        level = {"opt=off": levels.ORT_DISABLE_ALL, "opt=basic": levels.ORT_ENABLE_BASIC,
                 "opt=extended": levels.ORT_ENABLE_EXTENDED, "opt=all": levels.ORT_ENABLE_ALL}
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = peer.threads_each(threads, instances)
        settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        for option in options:
            settings.graph_optimization_level = level[option]
        try:
            self.sessions = [ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
                             for _ in range(instances)]
        except Exception as error:
            if "NOT_IMPLEMENTED" in str(error) or "Unsupported" in str(error):
                raise peer.Unsupported(error) from None
            raise
        self.names = [output.name for output in self.sessions[0].get_outputs()]

    def run(self, instance, feed):
        return self.sessions[instance].run(None, feed)

    def outputs(self, feed):
        return dict(zip(self.names, self.run(0, feed)))


if __name__ == "__main__":
    peer.main(OnnxRuntime())
