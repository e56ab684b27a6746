# SPDX-License-Identifier: Apache-2.0
"""One profiler, many threads: some run, some read, some clear, some begin and end. Worth most where the package is
built with AddressSanitizer. SONDE_STRESS_ROUNDS says how many things each thread does."""

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

sonde = pytest.importorskip("sonde")

ROUNDS = int(os.environ.get("SONDE_STRESS_ROUNDS", "60"))


def all_at_once(*jobs, threads=2):
    """Each job on some threads, ROUNDS times; what one of them raises is raised here."""
    errors = []

    def work(job, seed):
        dice = random.Random(seed)
        try:
            for _ in range(ROUNDS):
                job(dice)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=work, args=(job, f"{i} {k}")) for i, job in enumerate(jobs) for k in
               range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture(scope="module")
def session():
    return sonde.InferenceSession("zoo:tiny_cnn")


@pytest.fixture(scope="module")
def feed(session):
    return session.random_inputs(seed=1)


def passing_session(dice):
    """Gone before anybody has read what it recorded."""
    with sonde.InferenceSession(dice.choice(("zoo:tiny_mlp", "zoo:tiny_loop"))) as passing:
        with sonde.record("passing", warm_up=dice.random() < 0.2):
            passing.run(None, passing.random_inputs(seed=1))


def look(profiler, dice):
    dice.choice((profiler.table, profiler.summary, profiler.columns, profiler.rows, lambda: profiler.records,
                 lambda: profiler.report("records"), lambda: profiler.to_bytes(".json"),
                 lambda: profiler.to_bytes(".pftrace")))()


def test_a_profiler_is_read_while_it_is_cleared():
    """What is cleared belongs to sessions that are gone: nobody but the reader keeps the names of their 2,000 steps."""
    meet = threading.Barrier(3)

    def together(act):
        meet.wait()
        act()

    with sonde.profile(level=1) as profiler:
        for _ in range(ROUNDS // 3):
            with sonde.InferenceSession("zoo:tiny_chain") as passing:
                passing.run(None, passing.random_inputs(seed=1))
            with ThreadPoolExecutor(3) as pool:
                # Who comes last goes first: a reader, mostly.
                list(pool.map(together, (profiler.clear, profiler.columns, profiler.table)))
    assert profiler.summary()["dropped"] == 0


def test_data_frames_are_made_while_others_run_and_clear(session, feed):
    pandas = pytest.importorskip("pandas")
    with sonde.profile(memory=True) as profiler:
        all_at_once(
            passing_session,
            lambda dice: session.run(None, feed),
            lambda dice: isinstance(profiler.get_pandas_dataframe(), pandas.DataFrame) or 1 / 0,
            lambda dice: profiler.clear(),
        )
    assert profiler.summary()["dropped"] == 0


def test_a_profiler_is_read_while_it_begins_and_ends(session, feed):
    profiler = sonde.profile(level=2)
    turn = threading.Lock()

    def begin_and_end(dice):
        with turn, profiler:
            session.run(None, feed)
            look(profiler, dice)

    def use(dice):
        try:
            dice.choice((profiler.pause, profiler.resume, profiler.clear, lambda: look(profiler, dice)))()
        except sonde.InvalidArgument:
            pass  # paused already, not running, not run yet, over

    all_at_once(passing_session, begin_and_end, use)
    with profiler:
        session.run(None, feed)
    assert profiler.summary()["iterations"] == 1


def test_the_profilers_of_the_process_are_switched_by_everybody(tmp_path, session, feed):
    def switch(dice):
        name = tmp_path / f"{threading.get_ident()}.{dice.choice(('json', 'pftrace'))}"
        try:
            dice.choice((sonde.profiler.start, sonde.profiler.stop, sonde.profiler.clear, sonde.profiler.get,
                         sonde.profiler.get_profile, lambda: sonde.profiler.dump(name)))()
        except sonde.InvalidArgument:
            pass  # nothing was recorded

    def memory(dice):
        try:
            dice.choice((sonde.memory_profiler.start, sonde.memory_profiler.stop, sonde.memory_profiler.reset,
                         lambda: sonde.memory_profiler.get_max_memory_info("cpu"),
                         lambda: sonde.memory_profiler.get_memory_trace("cpu")))()
        except sonde.InvalidArgument:
            pass  # not running, not started

    all_at_once(passing_session, switch, memory, lambda dice: session.run(None, feed))
    sonde.profiler.stop()
    sonde.profiler.clear()
    sonde.memory_profiler.reset()
