"""A trainer's process from its start to its end, however it ends: nothing paid is left running."""

from __future__ import annotations

import signal

import pytest

from endpoint import LocalEndpoint
from faulty_proxy import FaultyProxy, problem, refuse
from polling import until
from programs import running_programs
from trainer_process import TrainerProcess, start_trainer

BEGIN = """
import asyncio, os, signal, sys
from code_rewards import AsyncRewardClient, RewardClient, RunOptions
from programs import DOUBLE, ENDLESS, NOTHING, RIGHT, SLOW
"""
SYNC = """
client = RewardClient(run=RunOptions(workers=1))
client.score([ENDLESS], [SLOW])
"""
ASYNC = """
client = AsyncRewardClient(run=RunOptions(workers=1))
asyncio.run(client.score([ENDLESS], [SLOW]))
"""
BLOCK = """
async def train():
    async with AsyncRewardClient(run=RunOptions(workers=1)) as client:
        await client.score([ENDLESS], [SLOW])
asyncio.run(train())
"""
# As trainers do that run reward functions on a loop of their own.
DAEMON = """
import threading
client = AsyncRewardClient(run=RunOptions(workers=1))
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
asyncio.run_coroutine_threadsafe(client.score([ENDLESS], [SLOW]), loop).result()
"""
HANDLED = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
"""
CHAINED = """
before = []
def chain(number, frame):
    print("mine first", flush=True)
    before[0](number, frame)
client = RewardClient(run=RunOptions(workers=1))
before.append(signal.signal(signal.SIGTERM, chain))
client.score([ENDLESS], [SLOW])
"""
NO_RUN = """
RewardClient().score([ENDLESS], [SLOW])
"""


def the_run(proxy: FaultyProxy) -> str:
    return proxy.requests("PUT", "/v1/runs/")[0].path.rsplit("/", 1)[1]


def begin(trainer: TrainerProcess) -> None:
    """Until its program runs."""
    until(lambda: running_programs() or trainer.process.poll() is not None)
    assert trainer.process.poll() is None, trainer.end().stderr


INTERRUPTED = [
    pytest.param(SYNC, signal.SIGINT, -signal.SIGINT, id="Ctrl-C in a call"),
    pytest.param(ASYNC, signal.SIGINT, -signal.SIGINT, id="Ctrl-C in a coroutine"),
    pytest.param(BLOCK, signal.SIGINT, -signal.SIGINT, id="Ctrl-C in a block"),
    pytest.param(DAEMON, signal.SIGINT, -signal.SIGINT, id="Ctrl-C beside a loop"),
    pytest.param(SYNC, signal.SIGTERM, -signal.SIGTERM, id="SIGTERM in a call"),
    pytest.param(DAEMON, signal.SIGTERM, -signal.SIGTERM, id="SIGTERM beside a loop"),
    pytest.param(SYNC, signal.SIGHUP, -signal.SIGHUP, id="a closed terminal"),
    pytest.param(HANDLED + SYNC, signal.SIGTERM, 7, id="SIGTERM that the trainer handles"),
    pytest.param(CHAINED, signal.SIGTERM, -signal.SIGTERM, id="SIGTERM that the trainer passes on"),
]


@pytest.mark.parametrize(("source", "number", "code"), INTERRUPTED)
def test_an_interrupted_trainer_leaves_nothing(
    endpoint: LocalEndpoint, proxy: FaultyProxy, source: str, number: int, code: int
) -> None:
    with start_trainer(BEGIN + source, proxy.url, endpoint.api_key) as trainer:
        begin(trainer)
        trainer.signal(number)
        ended = trainer.end()
    assert ended.code == code, ended.stderr
    assert ("mine first" in ended.stdout) is (source is CHAINED)
    assert running_programs() == []
    [asked] = proxy.requests("POST", "/v1/rewards")
    assert f"/v1/batches/{asked.key}" in [seen.path for seen in proxy.requests("DELETE")]
    run = endpoint.get(f"/v1/runs/{the_run(proxy)}")
    assert run["state"] == "finished"
    assert len(proxy.requests("DELETE", "/v1/runs/")) == 1
    for noise in ("was never retrieved", "was destroyed", "Exception ignored", "never awaited"):
        assert noise not in ended.stderr


def test_batches_without_a_run_are_cancelled_too(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    with start_trainer(BEGIN + NO_RUN, proxy.url, endpoint.api_key) as trainer:
        begin(trainer)
        trainer.signal(signal.SIGTERM)
        assert trainer.end().code == -signal.SIGTERM
    assert running_programs() == []
    assert len(proxy.requests("DELETE", "/v1/batches/")) == 1


ENDINGS = [
    pytest.param("", 0, id="without closing"),
    pytest.param("sys.exit(3)", 3, id="by an exit code"),
    pytest.param("1 / 0", 1, id="by an exception"),
    pytest.param("client.close()", 0, id="closed"),
]


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
def test_a_trainer_that_ends_finishes_its_run(
    endpoint: LocalEndpoint, proxy: FaultyProxy, ending: str, code: int
) -> None:
    source = f"{BEGIN}\nclient = RewardClient(run=RunOptions(workers=1))\n"
    source += f"assert client.score([RIGHT], [DOUBLE]).rewards == [1]\n{ending}\n"
    with start_trainer(source, proxy.url, endpoint.api_key) as trainer:
        ended = trainer.end()
    assert ended.code == code, ended.stderr
    assert "code-rewards:" not in ended.stderr
    assert endpoint.get(f"/v1/runs/{the_run(proxy)}")["state"] == "finished"
    assert len(proxy.requests("DELETE", "/v1/runs/")) == 1


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            refuse(200, b'{"remaining_sandboxes":["i1","i2"]}', content_type="application/json"),
            "sandboxes are still there: i1, i2",
        ),
        (problem(401, "unauthorized"), "the run could not be finished, and expires by itself"),
    ],
)
def test_what_could_not_be_ended_is_said(endpoint: LocalEndpoint, proxy: FaultyProxy, act, message: str) -> None:
    proxy.plan("DELETE", "/v1/runs/", act)
    source = f"{BEGIN}\nRewardClient(run=RunOptions(workers=1)).register()"
    with start_trainer(source, proxy.url, endpoint.api_key) as trainer:
        ended = trainer.end()
    assert ended.code == 0
    assert message in ended.stderr
    endpoint.ask("DELETE", f"/v1/runs/{the_run(proxy)}")


def test_a_killed_trainer_costs_nothing_for_long(endpoint: LocalEndpoint) -> None:
    """Its run expires; here its last sign of life is made older instead of waiting for that."""
    run_id = "killed"
    with start_trainer(BEGIN + SYNC, endpoint.url, endpoint.api_key, CODE_REWARDS_RUN_ID=run_id) as trainer:
        begin(trainer)
        trainer.signal(signal.SIGKILL)
        assert trainer.end().code == -signal.SIGKILL
    until(lambda: not running_programs())
    assert endpoint.get(f"/v1/runs/{run_id}")["state"] == "active"
    for wanted in endpoint.run_ids():
        endpoint.age_run(wanted)
    assert endpoint.get(f"/v1/runs/{run_id}")["state"] == "expired"
    until(lambda: endpoint.sweep() or not endpoint.sandboxes())


FORK = """
client = RewardClient(run=RunOptions(workers=1))
assert client.score([RIGHT], [DOUBLE]).rewards == [1]
run_id = client.run_id
child = os.fork()
assert client.run_id == run_id
assert client.score([RIGHT, NOTHING], [DOUBLE] * 2).rewards == [1, 0]
if child == 0:
    sys.exit(5)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 5
assert client.score([RIGHT], [DOUBLE]).rewards == [1], "the child has not finished the run"
print(client.close())
"""
FORK_FIRST = """
client = RewardClient(run=RunOptions(workers=1))
child = os.fork()
if child == 0:
    client.score([RIGHT], [DOUBLE])
    sys.exit(len(client.close()))
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
client.score([RIGHT], [DOUBLE])
"""
KILLED_CHILD = """
client = RewardClient(run=RunOptions(workers=1))
client.register()
child = os.fork()
if child == 0:
    signal.pause()
os.kill(child, signal.SIGTERM)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
assert client.score([RIGHT], [DOUBLE]).rewards == [1]
"""
SPAWN = """
import multiprocessing
client = AsyncRewardClient(run=RunOptions(workers=1))
with multiprocessing.get_context("spawn").Pool(2) as pool:
    rewards = pool.map(score_here, [(client, RIGHT), (client, NOTHING), (client, RIGHT)])
assert rewards == [[1], [0], [1]], rewards
"""


@pytest.mark.parametrize("source", [FORK, FORK_FIRST, KILLED_CHILD], ids=["used before", "not used before", "killed"])
def test_a_forked_child_has_a_part_of_its_own(endpoint: LocalEndpoint, proxy: FaultyProxy, source: str) -> None:
    with start_trainer(BEGIN + source, proxy.url, endpoint.api_key) as trainer:
        ended = trainer.end()
    assert ended.code == 0, ended.stderr
    keys = [seen.key for seen in proxy.requests("POST", "/v1/rewards")]
    assert len(set(keys)) == len(keys)
    assert len({seen.path for seen in proxy.requests("PUT")}) == 1
    assert len(proxy.requests("DELETE", "/v1/runs/")) == 1, "only the parent finishes the run"
    assert endpoint.get(f"/v1/runs/{the_run(proxy)}")["state"] == "finished"


def test_copies_in_other_processes_count_for_one_run(endpoint: LocalEndpoint, proxy: FaultyProxy, tmp_path) -> None:
    script = tmp_path / "train.py"
    work = "def score_here(work):\n    client, text = work\n"
    work += "    return asyncio.run(client.score([text], [DOUBLE])).rewards\n"
    indented = SPAWN.strip().replace("\n", "\n    ")
    script.write_text(f"{BEGIN}\n{work}\nif __name__ == '__main__':\n    {indented}\n")
    source = f"import os, sys; os.execv(sys.executable, [sys.executable, {str(script)!r}])"
    with start_trainer(source, proxy.url, endpoint.api_key) as trainer:
        ended = trainer.end()
    assert ended.code == 0, ended.stderr
    assert len(proxy.requests("POST", "/v1/rewards")) == 3
    assert len({seen.path for seen in proxy.requests("PUT")}) == 1
    assert len(proxy.requests("DELETE", "/v1/runs/")) == 1
    run = endpoint.get(f"/v1/runs/{the_run(proxy)}")
    assert (run["state"], run["totals"]["batches"]) == ("finished", 3)
