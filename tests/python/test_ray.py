# SPDX-License-Identifier: Apache-2.0
"""sonde.ray on a real Ray of this machine: results in order, once each and equal to those of one process, also when a
worker is killed; threads, weights and traces of actors; requests to Ray Serve. script/setup full installs Ray."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

sonde = pytest.importorskip("sonde")
if importlib.util.find_spec("ray") is None:
    pytest.skip("ray is not installed (script/setup full)", allow_module_level=True)
import local_ray  # noqa: E402, F401
import ray  # noqa: E402
import ray.data  # noqa: E402

import sonde.ray  # noqa: E402
import sonde.zoo  # noqa: E402

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no tests to import
ROOT = pathlib.Path(__file__).resolve().parents[2]
CPUS = 5


@pytest.fixture(scope="module")
def cluster():
    """Ray with as many CPUs as the tests need, whatever the machine has: they count, they do not bind."""
    folder = tempfile.mkdtemp(prefix="sonde-ray-")  # short: sockets lie in it
    try:
        ray.init(num_cpus=CPUS, include_dashboard=False, _node_ip_address="127.0.0.1", _temp_dir=folder,
                 object_store_memory=200 * 2**20, log_to_driver=False, configure_logging=False)
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def weights(tmp_path):
    return tmp_path / "weights"


def images(batch):
    """The image of every id."""
    return {"id": batch["id"], "image": np.stack([np.random.default_rng(int(i)).random((3, 32, 32), np.float32)
                                                  for i in batch["id"]])}


def dataset(count, blocks=20):
    return ray.data.range(count, override_num_blocks=blocks).map_batches(images, batch_size=50)


def single(count, model="zoo:tiny_resnet"):
    """What one process computes, in batches of its own."""
    worker = sonde._worker.Worker(sonde._worker.Job(model, inputs="image", rows=1, share_weights=False), 1)
    return worker(images({"id": np.arange(count)}))["output"]


def check(rows, count):
    assert [row["id"] for row in rows] == list(range(count))
    assert np.array_equal(np.stack([row["output"] for row in rows]), single(count))


@pytest.mark.parametrize("actors", [1, 2, 4])
def test_results_are_in_order_and_equal_to_those_of_one_process(cluster, actors, weights):
    made = sonde.ray.map_batches(dataset(500), "zoo:tiny_resnet", inputs="image", keep=["id"], rows=1, actors=actors,
                                 batch_size=48, share_weights=weights)
    check(made.take_all(), 500)
    assert not ray.data.DataContext.get_current().execution_options.preserve_order


class Trap:
    """The first worker that comes to image 230 says which process it is and waits for its end."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, batch):
        go = os.path.join(self.folder, "go")
        if 230 in batch["id"] and not os.path.exists(go):
            with open(os.path.join(self.folder, "pid.new"), "w") as file:
                file.write(str(os.getpid()))
            os.replace(file.name, os.path.join(self.folder, "pid"))
            while not os.path.exists(go):
                time.sleep(0.01)
        return batch


def test_a_worker_that_is_killed_loses_and_repeats_nothing(cluster, tmp_path, weights):
    traces = tmp_path / "traces"
    made = sonde.ray.map_batches(dataset(500), "zoo:tiny_resnet", inputs="image", keep=["id"], rows=1, actors=2,
                                 batch_size=25, pre=Trap(tmp_path), share_weights=weights, profile_to=traces)
    killed = []

    def kill():
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        killed.append(int((tmp_path / "pid").read_text()))
        os.kill(killed[0], signal.SIGKILL)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    check(made.take_all(), 500)
    killer.join()
    by_process = {int(re.search(r"-(\d+)-\d+\.pftrace$", str(path))[1]): path for path in traces.iterdir()}
    assert killed[0] in by_process and len(by_process) >= 2
    for path in by_process.values():
        sonde.load_profile(path)  # also the one of the killed worker


@ray.remote
class Actor:
    """A process that first has no model, then one."""

    def memory(self):
        with open("/proc/self/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024

    def load(self, model, arguments):
        self.made = sonde.ray.Predictor(model, **arguments)
        session = self.made._worker.session
        self.made(dict(session.random_inputs(seed=1)))
        return session.get_session_options().intra_op_num_threads


def test_actors_have_a_thread_for_each_of_their_cpus(cluster, weights):
    for cpus, threads in ((1, 1), (0.5, 1), (2, min(2, sonde._worker.cores()))):
        actor = Actor.options(num_cpus=cpus).remote()
        assert ray.get(actor.load.remote("zoo:tiny_mlp", {"share_weights": weights})) == threads
        ray.kill(actor)


def test_four_actors_have_the_weights_once(cluster, tmp_path, weights):
    """Measured in processes that are there all the time, so that what they share otherwise does not change."""
    path = tmp_path / "m.onnx"
    sonde.zoo.save("resnet50", str(path))
    actors = [Actor.options(num_cpus=0.5).remote() for _ in range(4)]
    memory = lambda: np.array(ray.get([actor.memory.remote() for actor in actors]), float)  # noqa: E731
    arguments = {"share_weights": weights}
    for actor in actors:  # allocates what any model needs
        ray.get(actor.load.remote("zoo:tiny_mlp", arguments))
    empty = memory()
    ray.get(actors[0].load.remote(str(path), arguments))
    one = (memory() - empty).sum()
    ray.get([actor.load.remote(str(path), arguments) for actor in actors[1:]])
    four = (memory() - empty).sum()
    for actor in actors:
        ray.kill(actor)
    assert one > 90e6, "the weights of resnet50 are 102 MB"
    assert four <= 1.5 * one, f"four actors: {four / 1e6:.1f} MB, one: {one / 1e6:.1f} MB"


def test_actors_that_take_all_cpus_are_warned_about(cluster):
    with pytest.warns(RuntimeWarning, match="take all 5 CPUs"):
        sonde.ray.map_batches(dataset(10), "zoo:tiny_mlp", actors=CPUS)


def test_what_is_wrong_is_said_in_the_driver(cluster, weights):
    made = sonde.ray.map_batches(dataset(10, 1), "zoo:tiny_resnet", share_weights=weights,
                                 ray_remote_args={"max_task_retries": 0})
    with pytest.raises(Exception, match="no column 'input' in the batch"):
        made.take_all()
    for arguments, said in (({"actors": 1.5}, "actors is 1.5"), ({"actors": (3, 2)}, "the least is more than the most"),
                            ({"rows": 1.5}, "rows is 1.5"), ({"keep": ["y"], "outputs": "y"}, "keep has 'y', but"),
                            ({"inputs": {"input": [0]}}, "has the name 0, but names of columns are texts")):
        with pytest.raises(sonde.InvalidArgument, match=said):
            sonde.ray.map_batches(dataset(10, 1), "zoo:tiny_resnet", **arguments)
    with pytest.raises(sonde.InvalidArgument, match="takes a dataset of Ray, not a value of type list"):
        sonde.ray.map_batches([1, 2], "zoo:tiny_resnet")


@pytest.mark.parametrize("arguments,said", [
    ({"keep": ["output"]}, "keep has 'output', but the model makes a column 'output'"),
    ({"keep": ["output"], "post": lambda results: results}, "keep has 'output', but `post` returned a column 'output'"),
    ({"post": lambda results: {"y": results["output"][:3], "z": results["output"]}}, "'y' has 3, 'z' has 5"),
    ({"keep": ["id"], "post": lambda results: {"y": results["output"][:3]}}, "'id' has 5, 'y' has 3"),
    ({"post": lambda results: None}, "`post` returned a value of type NoneType, expected a dict of columns"),
    ({"post": lambda results: {"y": 3}}, "`post` returned a single value .int. for column 'y'"),
    ({"pre": lambda batch: {"image": batch["image"] * 1e300}}, "column 'image' has numbers that do not fit float32"),
])
def test_what_is_wrong_with_columns_is_said_in_the_driver(cluster, arguments, said, weights):
    made = sonde.ray.map_batches(
        dataset(5, 1).map_batches(
            lambda batch: {**batch, "output": batch["id"], "image": batch["image"].astype(np.float64) + 1}),
        "zoo:tiny_resnet", inputs="image", share_weights=weights, ray_remote_args={"max_task_retries": 0}, **arguments)
    with pytest.raises(Exception, match=said):
        made.take_all()


def test_rows_can_be_left_out_where_nothing_is_kept(cluster, weights):
    made = sonde.ray.map_batches(dataset(20, 1), "zoo:tiny_resnet", inputs="image", batch_size=10, share_weights=weights,
                                 post=lambda results: {"y": results["output"][::2]})
    assert made.count() == 10


def test_the_example_classifies_and_merges(tmp_path):
    """In a process of its own, with a Ray of its own."""
    command = [sys.executable, ROOT / "examples" / "ray_batch.py", "--actors", "2", "--images", "300", "--profile-to",
               tmp_path / "traces", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    assert re.search(r"300 images on 2 actors in [\d.]+ s: [\d.,]+ images/s", done.stdout)
    assert "equal to one process" in done.stdout
    assert len(list((tmp_path / "traces").glob("*.pftrace"))) >= 2


# ---------------------------------------------------------------- Serve
@pytest.mark.parametrize("rows", [0, 7])
def test_an_answer_belongs_to_its_request(rows):
    if importlib.util.find_spec("ray.serve") is None or importlib.util.find_spec("starlette") is None:
        pytest.skip("ray[serve] is not installed (script/setup full)")
    from sonde._ray_serve import run_together

    job = sonde._worker.Job("zoo:tiny_mlp", inputs="x", share_weights=False, post=lambda _: {"y": np.zeros(rows)})
    answers = run_together(sonde._worker.Worker(job), [{"x": np.zeros(16, np.float32)}] * 5)
    assert [str(answer) for answer in answers] == [
        f"`post` returned {rows} rows in column 'y' for 1 rows of the batch"] * 5


@pytest.fixture(scope="module")
def served(cluster, tmp_path_factory):
    if importlib.util.find_spec("ray.serve") is None or importlib.util.find_spec("starlette") is None:
        pytest.skip("ray[serve] is not installed (script/setup full)")
    from ray import serve

    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    application = sonde.ray.deployment("zoo:tiny_resnet", inputs="image", outputs="scores", max_batch_size=8,
                                       batch_wait_timeout_s=0.02, num_cpus=1, rows=1,
                                       share_weights=tmp_path_factory.mktemp("weights"))
    handle = serve.run(application, name="test", route_prefix="/")
    yield handle, f"http://127.0.0.1:{port}/"
    serve.shutdown()


def post(url, body):
    with urllib.request.urlopen(urllib.request.Request(url, body, method="POST")) as answer:
        return json.load(answer)


def test_requests_are_answered_alone_and_together(served):
    handle, url = served
    asked = images({"id": np.arange(40)})["image"]
    expected = single(40)
    answers = [handle.remote({"image": image}) for image in asked]
    assert np.array_equal(np.stack([answer.result()["scores"] for answer in answers]), expected)
    alone = handle.predict.remote({"image": asked[3]}).result()
    assert np.array_equal(alone["scores"], expected[3])
    got = post(url, json.dumps({"image": asked[5].tolist()}).encode())
    assert np.array_equal(np.array(got["scores"], np.float32), expected[5])


def test_a_wrong_request_spoils_no_other(served):
    handle, url = served
    asked = images({"id": np.arange(6)})["image"]
    answers = [handle.remote({"image": image} if i != 3 else {"picture": image}) for i, image in enumerate(asked)]
    answers.append(handle.remote({"image": np.zeros((3, 5), np.float32)}))
    expected = single(6)
    for i, answer in enumerate(answers):
        if i in (3, 6):
            with pytest.raises(Exception, match="picture|shape|should be"):
                answer.result()
        else:
            assert np.array_equal(answer.result()["scores"], expected[i])
    for body in (b"", b"[1, 2]", b"\xff\xfe", b'{"image": [[1], [2, 3]]}', b'{"image": "text"}'):
        with pytest.raises(urllib.error.HTTPError) as failed:
            post(url, body)
        assert failed.value.code == 400 and "error" in json.load(failed.value)


@pytest.mark.parametrize("after, said", [
    (lambda _: {}["x"], "KeyError: 'x'"),
    (lambda _: int("x"), "ValueError: invalid literal"),
    (lambda _: 5, "`post` returned"),
    (lambda outputs: {"y": outputs["output"][:0]}, "`post` returned 0 rows"),
    (lambda outputs: {"y": outputs["output"] * np.nan}, "the answer cannot be written as JSON"),
    (lambda outputs: {"y": outputs["output"].astype(str)}, None),
])
def test_what_is_not_the_fault_of_a_request_is_not_told_as_one(after, said):
    import asyncio

    if importlib.util.find_spec("ray.serve") is None or importlib.util.find_spec("starlette") is None:
        pytest.skip("ray[serve] is not installed (script/setup full)")
    from starlette.requests import Request

    from sonde._ray_serve import Replica, run_together

    worker = sonde._worker.Worker(sonde._worker.Job("zoo:tiny_mlp", inputs="x", share_weights=False, post=after))

    class Alone(Replica):
        """Without Serve around it."""

        def __init__(self):
            pass

        async def _batch(self, sample):
            return run_together(worker, [sample])[0]

    async def body():
        return {"type": "http.request", "body": json.dumps({"x": [0.0] * 16}).encode(), "more_body": False}

    answer = asyncio.run(Alone()(Request({"type": "http", "method": "POST", "headers": []}, body)))
    told = json.loads(answer.body)
    assert answer.status_code == (500 if said else 200)
    assert said is None or told["error"].startswith(said)
