# SPDX-License-Identifier: Apache-2.0
"""sonde.metrics: the text, the small server, and that counters are right under threads."""

import re
import threading
import urllib.error
import urllib.request

import pytest

sonde = pytest.importorskip("sonde")

SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')


def samples(text):
    """{(name, labels): value}; every line is a comment or a sample."""
    found = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("#"):
            assert re.match(r"# (HELP|TYPE|UNIT) sonde_\w+ \S|# EOF$", line), line
            continue
        match = SAMPLE.match(line)
        assert match, line
        key = (match[1], match[2] or "")
        assert key not in found, line
        found[key] = float(match[3])
    assert text.endswith("\n")
    return found


def runs_of(model, session=0):
    labels = f'model="{model}",session="{session}"'
    return samples(sonde.metrics.text()).get(("sonde_run_duration_seconds_count", labels), 0)


@pytest.fixture(scope="module")
def session():
    sonde.metrics.start()
    return sonde.InferenceSession("zoo:tiny_mlp")


def test_runs_are_counted(session):
    feed = session.random_inputs(seed=1)
    before = runs_of("tiny_mlp")
    for _ in range(5):
        session.run(None, feed)
    assert runs_of("tiny_mlp") == before + 5


def test_a_histogram_is_one(session):
    session.run(None, session.random_inputs(seed=1))
    found = samples(sonde.metrics.text())
    buckets = [(labels, value) for (name, labels), value in found.items()
               if name == "sonde_run_duration_seconds_bucket" and 'model="tiny_mlp",session="0"' in labels]
    values = [value for _, value in buckets]
    assert len(values) == 42 and values == sorted(values)
    assert buckets[-1][0].endswith('le="+Inf"')
    assert values[-1] == found["sonde_run_duration_seconds_count", 'model="tiny_mlp",session="0"']
    bounds = [float(re.search(r'le="(.*)"', labels)[1]) for labels, _ in buckets]
    assert bounds == sorted(bounds)


def test_failures_are_counted_by_status(session):
    key = ("sonde_run_errors_total", 'model="tiny_mlp",session="0",status="cancelled"')
    before = samples(sonde.metrics.text()).get(key, 0)
    options = sonde.RunOptions()
    options.terminate = True
    with pytest.raises(sonde.Error):
        session.run(None, session.random_inputs(seed=1), options)
    assert samples(sonde.metrics.text())[key] == before + 1


def test_counters_survive_their_session():
    session = sonde.InferenceSession("zoo:tiny_chain")
    before = runs_of("tiny_chain")
    session.run(None, session.random_inputs(seed=1))
    session.close()
    assert runs_of("tiny_chain") == before + 1


def test_openmetrics_ends_as_it_must(session):
    text = sonde.metrics.text(openmetrics=True)
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    samples(text)
    assert "# TYPE sonde_run_errors counter" in text and "# UNIT sonde_run_duration_seconds seconds" in text


def test_both_formats_are_read_by_prometheus_own_parser(session):
    parser = pytest.importorskip("prometheus_client.parser")
    openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser")
    session.run(None, session.random_inputs(seed=1))
    families = {family.name for family in parser.text_string_to_metric_families(sonde.metrics.text())}
    assert "sonde_run_duration_seconds" in families
    families = {family.name for family in openmetrics.text_string_to_metric_families(sonde.metrics.text(True))}
    assert "sonde_memory_live_bytes" in families


def test_hostile_names_stay_in_their_labels(zoo, tmp_path):
    path = tmp_path / 'a"b\\c\nd{e="f"} 1\n# x.onnx'
    path.write_bytes(zoo("tiny_mlp").SerializeToString())
    session = sonde.InferenceSession(path)
    session.run(None, session.random_inputs(seed=1))
    found = samples(sonde.metrics.text())
    assert any('model="a\\"b\\\\c\\nd{e=\\"f\\"} 1\\n# x.onnx"' in labels for _, labels in found)


def test_many_threads_lose_no_run(session):
    feed = session.random_inputs(seed=1)
    before = runs_of("tiny_mlp")

    def work():
        for _ in range(100):
            session.run(None, feed)
            sonde.metrics.text()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runs_of("tiny_mlp") == before + 600


def get(url, method="GET", **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method)) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_the_server_answers_get_metrics(session):
    with sonde.metrics.serve() as server:
        kind, text = get(server.url)
        assert kind == sonde.metrics.CONTENT_TYPE and samples(text)
        kind, text = get(server.url, Accept="application/openmetrics-text; version=1.0.0,text/plain;q=0.5")
        assert kind == sonde.metrics.OPENMETRICS_CONTENT_TYPE and text.endswith("# EOF\n")
        assert get(server.url, "HEAD")[1] == ""
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(server.url.replace("/metrics", "/secrets"))
        assert refused.value.code == 404
        url = server.url
    with pytest.raises(urllib.error.URLError):
        get(url)


def test_sampling_shows_in_the_metrics(session):
    feed = session.random_inputs(seed=1)
    before = samples(sonde.metrics.text())["sonde_sampling_runs_total", ""]
    with sonde.profile(sample_every=10, max_overhead=1) as profiler:
        for _ in range(100):
            session.run(None, feed)
        assert samples(sonde.metrics.text())["sonde_sampling_every", ""] == 10
    assert profiler.summary()["iterations"] == 10
    after = samples(sonde.metrics.text())
    assert after["sonde_sampling_runs_total", ""] == before + 10 and after["sonde_sampling_every", ""] == 0


@pytest.mark.parametrize("arguments", [{"sample_every": -1}, {"sample_every": True}, {"sample_every": 2.5},
                                       {"sample_every": 1, "max_overhead": 0}, {"sample_every": 1, "max_overhead": -1},
                                       {"sample_every": 1, "max_overhead": float("nan")}])
def test_sampling_that_means_nothing_is_refused(arguments):
    with pytest.raises(sonde.InvalidArgument):
        sonde.profile(**arguments)


def test_a_profile_goes_to_a_file_for_prometheus(session, tmp_path):
    with sonde.profile() as profiler:
        session.run(None, session.random_inputs(seed=1))
    profiler.export(tmp_path / "x.prom")
    found = samples((tmp_path / "x.prom").read_text())
    assert found["sonde_run_duration_seconds_count", 'model="tiny_mlp",session="0"'] == 1
