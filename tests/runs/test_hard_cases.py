"""Cases that lost or damaged something once."""

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest

import gibo
from gibo import RandomSearch
from gibo.runs.pools import Futures

X0 = [0.0, 0.2, -0.1]


class Losing(Executor):
    """The first evaluation is lost, or the third is refused; the others run in threads."""

    def __init__(self, refuse):
        self.refuse, self.submitted, self.pool = refuse, 0, ThreadPoolExecutor(3)

    def submit(self, function, *arguments):
        self.submitted += 1
        if self.refuse and self.submitted == 3:
            raise RuntimeError("cannot schedule new futures")
        if not self.refuse and self.submitted == 1:
            future = Future()
            future.set_exception(OSError("node lost"))
            return future
        return self.pool.submit(function, *arguments)


@pytest.mark.parametrize("refuse", [False, True])
def test_what_runs_when_an_executor_fails_is_waited_for_and_recorded(refuse, tmp_path, monkeypatch):
    executor, calls, noticed = Losing(refuse), [], threading.Event()
    drop_pending = Futures.drop_pending

    def noticing(pool):
        noticed.set()
        return drop_pending(pool)

    def objective(x):
        calls.append(1)
        assert noticed.wait(60.0)  # they run until the failure is known
        return 1.0

    monkeypatch.setattr(Futures, "drop_pending", noticing)
    result = gibo.run(RandomSearch(X0, batch=4), objective, budget=8, executor=executor, journal=tmp_path)
    executor.pool.shutdown()
    assert result.reason.startswith("stopped: the executor ")
    assert result.evaluations == len(calls) > 0
    assert not result.failures
