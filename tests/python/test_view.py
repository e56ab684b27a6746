# SPDX-License-Identifier: Apache-2.0
"""'sonde view': who is answered and who is not, pages that grow while a model runs or a file is written, and the end.
Nothing here waits for a time, only for what the program says or does."""

import base64
import gzip
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import urllib.parse

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
FOREVER = ["-n", "1000000000"]


class View:
    """The program, and what a browser asks of it. Ended at the latest when the block is left."""

    def __init__(self, folder, *arguments, pass_fds=(), **environment):
        environment = {**{k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}, **environment}
        self.process = subprocess.Popen([PROGRAM, "view", *map(str, arguments)], cwd=folder, env=environment, text=True,
                                        pass_fds=pass_fds, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert "http://" in line, self.process.stderr.read()
        self.address = urllib.parse.urlsplit(line.split()[-1])
        self.host, self.port = self.address.hostname, self.address.port
        self.query = self.address.query
        self.token = urllib.parse.parse_qs(self.query)["token"][0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def ask(self, path="/", method="GET", query=None, host=None, **headers):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        connection.putrequest(method, f"{path}?{self.query if query is None else query}", skip_host=True,
                              skip_accept_encoding=True)
        connection.putheader("Host", host or self.address.netloc)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        try:
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def status(self, *arguments, **keys):
        return self.ask(*arguments, **keys)[0]

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def say(self, data):
        """Everything that comes back for these bytes, up to the end."""
        with self.connect() as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            except OSError:  # refused before all was said
                pass
            got = b""
            try:
                while part := s.recv(65536):
                    got += part
            except ConnectionResetError:
                pass
            return got

    def result(self):
        """Waits for the end: (exit status, the rest of standard output, standard error)."""
        out, said = self.process.stdout.read(), self.process.stderr.read()
        return self.process.wait(PATIENCE), out, said

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.result()


def sonde(folder, *arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


def head_of(data):
    """The JSON of the page's data."""
    data = gzip.decompress(data)
    return json.loads(data[:data.index(b"\n")])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("view")
    for name in ("old.pftrace", "new.pftrace", "trace.json"):
        assert sonde(folder, "profile", "zoo:tiny_cnn", "-q", "-n", "10", "-o", name).returncode == 0
    if "no report page" in sonde(folder, "report", "old.pftrace", "-q", "-o", "page.html").stderr:
        pytest.skip("this build has no report page")
    return folder


@pytest.fixture(scope="module")
def view(folder):
    """One program for all who only ask: none of them may end it."""
    with View(folder, "old.pftrace", "--no-open") as view:
        yield view
        assert view.end()[0] == 0


# ---- who is answered --------------------------------------------------------------------------------------


def test_the_address_is_of_this_machine_and_has_a_token_of_128_bits(view):
    assert view.host == "127.0.0.1" and re.fullmatch("[0-9a-f]{32}", view.token)


def test_each_program_has_a_token_of_its_own(view, folder):
    with View(folder, "old.pftrace", "--no-open") as other:
        assert other.token != view.token
        assert other.status(query=view.query) == 403


def test_the_page_is_the_report_page_with_the_profile_in_it(view):
    status, headers, page = view.ask()
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.startswith(b"<!doctype html>") and page.count(b'<script type="application/x-sonde-profile"') == 1
    assert b"<html data-live" not in page


def test_data_are_those_of_the_format_page_gz(view, folder):
    status, headers, data = view.ask("/data")
    assert sonde(folder, "report", "old.pftrace", "-q", "-o", "old.page.gz").returncode == 0
    assert status == 200 and gzip.decompress(data) == gzip.decompress((folder / "old.page.gz").read_bytes())
    assert headers["Content-Type"] == "application/octet-stream" and "Content-Encoding" not in headers
    assert headers["X-Sonde-Ended"] == "1"


@pytest.mark.parametrize("query", ["", "token=", "token", "token=0", "x=1", "Token={}", "token={}0", "token=0{}", "t=1&tok={}"])
@pytest.mark.parametrize("path", ["/", "/data", "/nothing"])
def test_without_the_token_there_is_no_answer(view, path, query):
    status, _, body = view.ask(path, query=query.format(view.token))
    assert status == 403 and b"token" in body and view.token.encode() not in body


def test_a_part_of_the_token_is_not_the_token(view):
    for n in range(len(view.token)):
        assert view.status(query=f"token={view.token[:n]}") == 403


def test_the_token_may_stand_behind_other_parameters(view):
    assert view.status(query=f"a=b&token={view.token}&c") == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}0",
                                  "127.0.0.2:{port}", "localhost.evil.example:{port}", "127.0.0.1.nip.io:{port}",
                                  "0.0.0.0:{port}", "127.0.0.1:{port}@evil.example", "LOCALHOST:{port}", "[::1]"])
def test_names_that_are_not_this_machines_own_are_refused(view, host):
    """A name of somebody else's that leads here (DNS rebinding) comes with the right address and a wrong name."""
    assert view.status(host=host.format(port=view.port)) == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_names_of_this_machine_are_answered(view, host):
    assert view.status(host=f"{host}:{view.port}") == 200


def test_a_request_without_a_host_is_refused(view):
    assert view.say(f"GET /?{view.query} HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("origin", ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1",
                                    "http://127.0.0.1:1", "http://localhost:{port}", "127.0.0.1:{port}", ""])
def test_pages_of_other_addresses_are_refused(view, origin):
    status, headers, _ = view.ask("/data", Origin=origin.format(port=view.port))
    assert status == 403 and not [name for name in headers if name.lower().startswith("access-control")]


def test_the_page_itself_may_ask(view):
    assert view.status("/data", Origin=f"http://127.0.0.1:{view.port}") == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "BREW"])
def test_only_get_and_head_are_answered(view, method):
    status, headers, _ = view.ask(method=method)
    assert status == 405 and headers["Allow"] == "GET, HEAD"
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert view.status(method=method, query="") == 403


@pytest.mark.parametrize("path", ["/", "/data"])
def test_head_tells_what_get_would_send(view, path):
    get, head = view.ask(path), view.ask(path, method="HEAD")
    assert head[0] == 200 and head[2] == b"" and get[1].items() == head[1].items()
    assert int(head[1]["Content-Length"]) == len(get[2])


@pytest.mark.parametrize("path", ["/favicon.ico", "/data/", "//", "/../etc/passwd", "/data%00", "/index.html", "/Data"])
def test_there_is_nothing_else(view, path):
    assert view.status(path) == 404


@pytest.mark.parametrize("path, query", [("/", None), ("/data", None), ("/nothing", None), ("/", "")])
def test_every_answer_tells_the_browser_what_it_may_not_do(view, path, query):
    headers = view.ask(path, query=query)[1]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store" and headers["X-Frame-Options"] == "DENY"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and policy.endswith("frame-ancestors 'none'")


def test_the_pages_own_policy_is_that_of_its_header(view):
    _, headers, page = view.ask()
    stated = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.decode()).group(1)
    assert headers["Content-Security-Policy"] == f"{stated}; frame-ancestors 'none'"


def test_data_that_are_known_are_not_sent_again(view):
    tag = view.ask("/data")[1]["ETag"]
    assert re.fullmatch('"[^"]+"', tag)
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        status, headers, body = view.ask("/data", If_None_Match=known)
        assert (status, body, headers["ETag"]) == (304, b"", tag) and headers["X-Sonde-Ended"] == "1"
    assert view.status("/data", If_None_Match='"other"') == 200


# ---- who does not ask as one should ------------------------------------------------------------------------


@pytest.mark.parametrize("head, status", [
    ("GET / HTTP/1.1\r\nHost\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nOrigin: a\r\nOrigin: b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA b: x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA: x\x00\r\n\r\n", 400),
    ("GET / HTTP/1.1\nHost: x\r\n\r\n", 400),
    ("GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", 400),
    ("GET * HTTP/1.1\r\n\r\n", 400),
    ("GET /  HTTP/1.1\r\n\r\n", 400),
    ("GET /\r\n\r\n", 400),
    ("\r\n\r\n", 400),
    (" / HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/2.0\r\n\r\n", 505),
    ("GET / ICY/1.0\r\n\r\n", 400),
])
def test_what_is_not_http_is_refused(view, head, status):
    assert view.say(head.encode()).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_head_has_a_limit(view):
    line = f"GET /?{view.query} HTTP/1.1\r\nHost: {view.address.netloc}\r\n"
    room = (16 << 10) - len(line) - len("A: \r\n\r\n")
    assert view.say(f"{line}A: {'x' * room}\r\n\r\n".encode()).startswith(b"HTTP/1.1 200 ")
    for more in (1, 1000, 1 << 20):
        assert view.say(f"{line}A: {'x' * (room + more)}\r\n\r\n".encode()).startswith(b"HTTP/1.1 431 ")


def test_a_head_may_come_in_pieces(view):
    with view.connect() as s:
        for byte in f"GET /data?{view.query} HTTP/1.1\r\nHost: {view.address.netloc}\r\n\r\n".encode():
            s.sendall(bytes([byte]))
        assert s.recv(12) == b"HTTP/1.1 200"


def test_garbage_and_hanging_up_do_it_no_harm(view):
    seed = int(os.environ.get("SONDE_SEED", random.randrange(1 << 32)))
    dice = random.Random(seed)
    good = f"GET /data?{view.query} HTTP/1.1\r\nHost: {view.address.netloc}\r\nIf-None-Match: *\r\n\r\n".encode()
    for _ in range(300):
        data = bytearray(good if dice.random() < 0.7 else dice.randbytes(dice.randrange(3000)))
        for _ in range(dice.randrange(8)):
            if data:
                data[dice.randrange(len(data))] = dice.choice([0, 10, 13, 32, 58, 63, 255, dice.randrange(256)])
        got = view.say(bytes(data[: dice.randrange(len(data) + 1)] if dice.random() < 0.3 else data))
        assert got == b"" or got.startswith(b"HTTP/1.1 "), f"SONDE_SEED={seed}"
    assert view.status() == 200


def test_who_hangs_up_in_the_middle_of_an_answer_does_it_no_harm(view):
    for _ in range(20):
        with view.connect() as s:
            s.sendall(f"GET /?{view.query} HTTP/1.1\r\nHost: {view.address.netloc}\r\n\r\n".encode())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # with a reset
            s.recv(10)
    assert view.status() == 200


def test_who_says_nothing_keeps_nobody_out(view):
    """More connections than there are places: those that were there first are let go."""
    silent = [view.connect() for _ in range(100)]
    try:
        silent[-1].sendall(b"GET / HT")
        assert view.status() == 200
        assert silent[0].recv(1) == b""
    finally:
        for s in silent:
            s.close()


def test_a_head_that_does_not_end_is_not_waited_for(view):
    with view.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nA: b\r\n")
        try:
            assert s.recv(1) == b""  # after ten seconds
        except ConnectionResetError:
            pass


# ---- what is shown -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trace.json", "old.pftrace"])
def test_once_ends_after_the_page_was_fetched(folder, name):
    with View(folder, name, "--no-open", "--once", "-q") as view:
        assert view.status(method="HEAD") == 200 and view.status(query="") == 403
        assert view.status() == 200
        assert view.result() == (0, "", "")


def test_profiles_of_other_suffixes_are_known_by_their_content(folder):
    (folder / "profile.bin").write_bytes((folder / "old.pftrace").read_bytes())
    with View(folder, "profile.bin", "--no-open") as view:
        assert head_of(view.ask("/data")[2])["summary"]["iterations"] == 10


def test_two_files_are_compared(folder):
    with View(folder, "old.pftrace", "new.pftrace", "--no-open") as view:
        page = view.ask()[2].decode()
        titles = re.findall(r'<script type="application/x-sonde-(\w+)" title="([^"]*)"', page)
        assert titles == [("profile", "old.pftrace"), ("comparison", ""), ("profile", "new.pftrace")]
        assert sonde(folder, "report", "new.pftrace", "-q", "-o", "new.page.gz").returncode == 0
        assert gzip.decompress(view.ask("/data")[2]) == gzip.decompress((folder / "new.page.gz").read_bytes())
        assert view.end()[0] == 0


def versions(view):
    """What a page that is open gets, one version after the other: (summary, whether it is the last)."""
    tag, ended = "", False
    while not ended:
        status, headers, data = view.ask("/data", **({"If_None_Match": tag} if tag else {}))
        if status == 304:
            continue
        assert status == 200 and headers["ETag"] != tag
        tag, ended = headers["ETag"], headers["X-Sonde-Ended"] == "1"
        yield head_of(data)["summary"], ended


def test_a_model_is_shown_while_it_runs(folder):
    with View(folder, "zoo:regnet_x_400mf", *FOREVER, "--no-open") as view:
        _, headers, page = view.ask()
        assert b"<html data-live" in page and "connect-src 'self'" in headers["Content-Security-Policy"]
        seen = []
        for summary, ended in versions(view):
            seen.append(summary["iterations"])
            assert not ended and seen == sorted(seen)
            if len(seen) > 2 and seen[-1] > seen[-2]:
                break
        assert view.end()[0] == 0


def data_of_page(page):
    """The JSON of the profile in a page."""
    blocks = re.findall(rb'<script type="application/x-sonde-profile"[^>]*>([^<]*)<', page)
    return head_of(base64.b64decode(blocks[-1]))


def test_the_first_figures_come_unasked(folder):
    """Whoever opens the page a moment later finds them in it; nobody has asked for data."""
    with View(folder, "zoo:tiny_mlp", *FOREVER, "--no-open") as view:
        while not data_of_page(view.ask()[2])["summary"]["iterations"]:
            pass
        assert view.end()[0] == 0


@pytest.mark.parametrize("options", [[], ["--level", "3", "-t", "2"], ["--instances", "2", "-t", "2"]])
def test_a_page_of_a_run_that_goes_on_has_bounded_size(folder, options):
    """A run of this model is three records: a second has some hundred thousand, and making a page of all of them would
    take longer than anybody waits. The note says how many runs there were."""
    with View(folder, "zoo:tiny_mlp", *FOREVER, "--no-open", *options) as view:
        tag, before = "", 0
        while before < 20_000:
            status, headers, data = view.ask("/data", **({"If_None_Match": tag} if tag else {}))
            if status == 304:
                continue
            tag, head = headers["ETag"], head_of(data)
            assert head["counts"]["spans"] < 100_000
            left_out = re.fullmatch(r"the first and the latest runs; (\d+) measured runs between them are left out", head["note"])
            runs = head["summary"]["iterations"] + (int(left_out[1]) if left_out else 0)
            assert runs >= before and (left_out or not head["note"])
            assert "build: tiny_mlp" in head["strings"]  # how it began is there
            before = runs
        assert view.end()[0] == 0


def test_the_end_is_shown_before_the_whole_run_is(folder):
    """Making the last page of so many runs takes a while; until then there are the latest of them."""
    with View(folder, "zoo:tiny_mlp", "-n", "50000", "--no-open") as view:
        seen = [(s["iterations"], ended) for s, ended in versions(view)]
        assert seen[-1] == (50000, True)
        assert all(n < 50000 for n, _ in seen[:-1])
        assert not data_of_page(view.ask()[2])["note"]
        assert view.end()[0] == 0


def test_a_model_that_has_run_is_shown_as_a_whole(folder):
    with View(folder, "zoo:tiny_cnn", "-n", "12", "--no-open") as view:
        assert list(versions(view))[-1][0]["iterations"] == 12
        _, headers, page = view.ask()
        assert b"<html data-live" not in page and "connect-src 'none'" in headers["Content-Security-Policy"]
        said = [view.process.stdout.readline() for _ in range(2)]
        assert said == ["Ctrl-C ends it.\n", "The run has ended; the page shows all of it.\n"]
        assert view.end() == (0, "", "")


def test_once_with_a_model_ends_when_the_whole_run_was_fetched(folder):
    with View(folder, "zoo:tiny_cnn", "-n", "10", "--level", "1", "--no-open", "--once") as view:
        assert list(versions(view))[-1][0]["iterations"] == 10
        assert view.result()[0] == 0


def test_a_file_is_shown_as_it_grows(folder, tmp_path):
    """The trace of a run up to its middle, then all of it."""
    whole = (folder / "old.pftrace").read_bytes()
    path = tmp_path / "growing.pftrace"
    path.write_bytes(whole[: len(whole) // 2])
    os.utime(path, (2e9, 2e9))  # written just now, however busy this machine is
    with View(tmp_path, path.name, "--no-open") as view:
        assert b"<html data-live" in view.ask()[2]
        assert head_of(view.ask("/data")[2])["summary"]["iterations"] < 10
        with path.open("ab") as f:
            f.write(whole[len(whole) // 2 :])
        while head_of(view.ask("/data")[2])["summary"]["iterations"] < 10:
            pass
        assert view.ask("/data")[1]["X-Sonde-Ended"] == "1"
        assert b"<html data-live" not in view.ask()[2]


def test_a_file_that_cannot_be_read_any_more_stays_as_it_was_shown(folder, tmp_path):
    path = tmp_path / "t.pftrace"
    path.write_bytes((folder / "old.pftrace").read_bytes())
    with View(tmp_path, path.name, "--no-open") as view:
        tag = view.ask("/data")[1]["ETag"]
        path.write_bytes(b"something else")
        assert view.status("/data", If_None_Match=tag) == 304
        path.write_bytes((folder / "new.pftrace").read_bytes())
        while view.status("/data", If_None_Match=tag) == 304:
            pass
        assert view.end()[0] == 0


def test_a_file_that_became_a_pipe_is_not_waited_for(folder, tmp_path):
    """Whoever opens a pipe that nobody writes to would wait for ever, and Ctrl-C with him."""
    path = tmp_path / "t.pftrace"
    path.write_bytes((folder / "old.pftrace").read_bytes())
    os.mkfifo(tmp_path / "pipe")
    with View(tmp_path, path.name, "--no-open") as view:
        tag = view.ask("/data")[1]["ETag"]
        os.rename(tmp_path / "pipe", path)
        for _ in range(500):  # so that it has had a look
            assert view.status("/data", If_None_Match=tag) == 304
        assert view.end()[0] == 0


def test_a_profile_may_come_through_a_pipe(folder):
    data = (folder / "old.pftrace").read_bytes()
    there, here = os.pipe()

    def feed():
        with os.fdopen(here, "wb") as f:
            f.write(data)

    writer = threading.Thread(target=feed)
    writer.start()
    try:
        with View(folder, f"/dev/fd/{there}", "--no-open", pass_fds=[there]) as view:
            assert head_of(view.ask("/data")[2])["summary"]["iterations"] == 10
            assert view.end()[0] == 0
    finally:
        os.close(there)
        writer.join()


def test_a_file_that_stopped_growing_is_all_there_is(folder, tmp_path):
    whole = (folder / "old.pftrace").read_bytes()
    path = tmp_path / "cut.pftrace"
    path.write_bytes(whole[:-10])
    os.utime(path, (1e9, 1e9))
    with View(tmp_path, path.name, "--no-open") as view:
        assert b"<html data-live" not in view.ask()[2] and view.ask("/data")[1]["X-Sonde-Ended"] == "1"
        assert "still being written" in view.end()[2]


def test_a_trace_that_another_process_writes_is_live(tmp_path, folder):
    path = tmp_path / "t.pftrace"
    writer = subprocess.Popen([PROGRAM, "run", "zoo:regnet_x_400mf", *FOREVER], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "SONDE_TRACE": str(path), "SONDE_LEVEL": "1"})
    try:
        while not path.exists() or sonde(tmp_path, "report", path.name, "-q").returncode:
            assert writer.poll() is None
        with View(tmp_path, path.name, "--no-open") as view:
            assert b"<html data-live" in view.ask()[2]
            seen = 0
            for _, ended in versions(view):
                seen += 1
                if seen == 3:
                    writer.send_signal(signal.SIGINT)
                    writer.wait(PATIENCE)
            assert ended and seen >= 3
            assert view.end()[0] == 0
    finally:
        writer.kill()
        writer.wait()


# ---- how it begins and ends --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_is_no_failure(folder, number):
    with View(folder, "old.pftrace", "--no-open") as view:
        assert view.end(number) == (0, "Ctrl-C ends it.\n", "")
        with pytest.raises(OSError):
            view.connect()


def test_a_signal_while_a_model_runs_ends_it_too(folder, tmp_path):
    with View(tmp_path, "zoo:tiny_cnn", *FOREVER, "--no-open") as view:
        code, _, said = view.end()
        assert code == 0 and said.startswith("sonde: interrupted ")
    assert os.listdir(tmp_path) == []


def test_inputs_that_cannot_be_read_are_said_before_there_is_a_page(tmp_path):
    done = sonde(tmp_path, "view", "zoo:tiny_cnn", "-i", "missing.npy", "--no-open")
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("sonde: ")


def test_a_run_that_fails_ends_it(tmp_path, folder):
    onnx = pytest.importorskip("onnx")
    numpy = pytest.importorskip("numpy")
    helper, types = onnx.helper, onnx.TensorProto
    graph = helper.make_graph([helper.make_node("Gather", ["x", "i"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", types.FLOAT, [4]),
                               helper.make_tensor_value_info("i", types.INT64, [1])],
                              [helper.make_tensor_value_info("y", types.FLOAT, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "g.onnx")
    numpy.save(tmp_path / "i.npy", numpy.array([100]))
    numpy.save(tmp_path / "x.npy", numpy.ones(4, numpy.float32))
    with View(tmp_path, "g.onnx", "-i", "x=x.npy", "-i", "i=i.npy", "--no-open") as view:
        code, _, said = view.result()
        assert code == 1 and said.startswith("sonde: ")


def test_a_port_that_is_taken_is_said(folder, view):
    done = sonde(folder, "view", "old.pftrace", "--no-open", "--port", view.port)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"sonde: port {view.port} of 127.0.0.1 is in use; choose another with --port, or leave --port out "
                           "for a free one\n")


def test_the_port_may_be_chosen(folder):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with View(folder, "old.pftrace", "--no-open", "--port", port) as view:
        assert view.port == port and view.status() == 200


def test_the_sixth_version_of_loopback(folder):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no ::1 here")
    with View(folder, "old.pftrace", "--no-open", "--host", "::1") as view:
        assert view.address.netloc == f"[::1]:{view.port}" and view.status() == 200


@pytest.mark.parametrize("arguments, code, message", [
    ([], 2, "view takes a FILE or a MODEL, or two FILEs"),
    (["a", "b", "c"], 2, "view takes a FILE or a MODEL, or two FILEs"),
    (["old.pftrace", "--host", "0.0.0.0"], 2, "--host 0.0.0.0: profiles are served to this machine alone"),
    (["old.pftrace", "--host", "localhost"], 2, "--host localhost: profiles are served to this machine alone"),
    (["old.pftrace", "--port", "65536"], 2, "--port 65536 is not a port"),
    (["old.pftrace", "-n", "5"], 2, "'old.pftrace' is a saved profile"),
    (["zoo:tiny_cnn", "-n", "0"], 2, "--iterations 0: nothing would be measured"),
    (["zoo:tiny_cnn", "--level", "4"], 2, "--level 4: the profiler has levels 1 to 3"),
    (["missing.pftrace"], 1, "cannot open 'missing.pftrace'"),
    (["missing.onnx"], 1, "cannot open 'missing.onnx'"),
    (["zoo:tiny_cnm"], 1, "unknown built-in model 'tiny_cnm'"),
    (["old.pftrace", "missing.pftrace"], 1, "cannot open 'missing.pftrace'"),
])
def test_mistakes_are_said(folder, arguments, code, message):
    done = sonde(folder, "view", "--no-open", *arguments)
    assert (done.returncode, done.stdout) == (code, "") and done.stderr.startswith(f"sonde: {message}"), done.stderr


@pytest.mark.parametrize("desktop, options, opened", [({"DISPLAY": ":9"}, [], True), ({"WAYLAND_DISPLAY": "w"}, [], True),
                                                      ({}, [], False), ({"DISPLAY": ":9"}, ["--no-open"], False)])
def test_the_browser_is_opened_where_there_is_a_desktop(folder, tmp_path, desktop, options, opened):
    """A browser that writes down what it is told, with nothing of it given to a shell."""
    browser = tmp_path / "browser"
    os.mkfifo(tmp_path / "told")
    browser.write_text(f'#!/bin/sh\necho "$#" "$1" >"{tmp_path}/told"\n')
    browser.chmod(0o755)
    with View(folder, "old.pftrace", *options, BROWSER=str(browser), **desktop) as view:
        if opened:
            assert (tmp_path / "told").read_text() == f"1 {view.address.geturl()}\n"
        assert view.status() == 200
        assert view.end()[0] == 0
    if not opened:
        waiting = os.open(tmp_path / "told", os.O_RDONLY | os.O_NONBLOCK)
        assert os.read(waiting, 1) == b""
        os.close(waiting)
