"""The reward function as TRL calls it: a coroutine on a loop of TRL's, with columns and ways to log."""

from __future__ import annotations

import asyncio
import inspect
import logging
import pickle
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from code_rewards.errors import InvalidRequestError, MisconfiguredError
from code_rewards.trl import CodeReward, code_reward, default_reward
from code_rewards.trl_faults import FaultBudgetSpentError
from code_rewards.trl_metrics import NO_PROGRAM_REASONS, VERDICTS
from code_rewards.trl_settings import RewardSettings, read_settings
from endpoint import LocalEndpoint
from faulty_proxy import FaultyProxy, problem, refuse, stream
from programs import CRASH, DOUBLE, NOTHING, PARTLY, RIGHT, fence

CASES = DOUBLE["test_cases"]
USAGE = {"wall_ms": 1, "queue_ms": 0, "workers": 1, "worker_seconds": 0.5}
LOST = {"code": "worker_lost", "detail": "twice", "retryable": False}
LATE = {"code": "deadline_exceeded", "detail": "too slow", "retryable": True}


class Log:
    """TRL's `log_metric` and `log_extra`."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.columns: dict[str, list[Any]] = defaultdict(list)

    def metric(self, name: str, value: float) -> None:
        self.metrics[name] = value

    def extra(self, name: str, values: list[Any]) -> None:
        self.columns[name].extend(values)


def call(reward: Any, completions: list[Any], log: Log | None = None, **columns: Any) -> list[float | None]:
    log = log or Log()
    given = {"test_cases": [CASES] * len(completions)} | columns
    return asyncio.run(
        reward(
            prompts=["double it"] * len(completions),
            completions=completions,
            completion_ids=[[1]] * len(completions),
            trainer_state=None,
            log_metric=log.metric,
            log_extra=log.extra,
            **given,
        )
    )


@pytest.fixture(scope="module")
def reward(endpoint: LocalEndpoint) -> Iterator[CodeReward]:
    made = CodeReward(RewardSettings(url=endpoint.url, api_key=endpoint.api_key, run_name="a test"))
    yield made
    made.client.finish()


@pytest.fixture
def faulty(endpoint: LocalEndpoint, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch):
    """Makes rewards whose requests go through the proxy. Unless told otherwise they try nothing twice."""
    monkeypatch.setattr("random.random", lambda: 0.02)
    made: list[CodeReward] = []

    def make(*, is_known: bool = False, **settings: Any) -> CodeReward:
        """The service only learns of the run, and makes workers for it, when it is to be known."""
        if not is_known:
            proxy.plan("PUT", "/v1/runs", refuse(201, b"{}"))
            proxy.plan("DELETE", "/v1/runs", refuse(200, b"{}"))
        budget = {"fault_budget_s": 0} | settings
        made.append(CodeReward(RewardSettings(url=proxy.url, api_key=endpoint.api_key, **budget)))
        return made[-1]

    yield make
    for one in made:
        one.client.finish()


def test_rewards_come_in_order_on_one_loop_after_another(reward: CodeReward) -> None:
    chat = [{"role": "assistant", "content": RIGHT}]
    assert call(reward, [NOTHING, RIGHT, PARTLY, chat, CRASH]) == [0, 1, 1 / 3, 1, 0]
    assert call(reward, [RIGHT, NOTHING]) == [1, 0]


def test_every_call_logs_the_same_names(reward: CodeReward) -> None:
    first, second = Log(), Log()
    call(reward, [RIGHT, PARTLY, NOTHING, CRASH, RIGHT], first)
    call(reward, [NOTHING], second)
    assert first.metrics.keys() == second.metrics.keys()
    wanted = {
        "reward_seconds",
        "worker_seconds_since_previous_reward",
        "queue_seconds",
        "retries",
        "duplicates",
        "faults",
    }
    assert {f"e2b/{name}" for name in wanted} <= first.metrics.keys()
    shares = {name: first.metrics[f"e2b/verdict/{name}"] for name in VERDICTS}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["passed"] == pytest.approx((1 + 1 / 3 + 0 + 0 + 1) / 5)
    assert shares["no_program"] == pytest.approx(1 / 5)
    assert shares["runtime_error"] == pytest.approx(1 / 5)
    assert first.metrics["e2b/duplicates"] == 1
    assert sum(second.metrics[f"e2b/no_program/{name}"] for name in NO_PROGRAM_REASONS) == 1
    assert second.metrics["e2b/worker_seconds"] == 0


def test_each_completion_has_its_verdict_in_the_table(reward: CodeReward) -> None:
    log = Log()
    call(reward, [PARTLY, NOTHING, CRASH, RIGHT, fence("print(")], log)
    assert log.columns["e2b/verdict"][:4] == [
        "1/3 passed, 2 wrong_output",
        "no_program: no_fenced_block",
        "0/3 passed, 3 runtime_error",
        "3/3 passed",
    ]
    assert log.columns["e2b/verdict"][4].startswith("syntax_error: line 1")


def test_rows_carry_limits_and_a_comparison(reward: CodeReward) -> None:
    """As datasets give them: fields that only other rows have are None."""
    sleepy = fence("import time\ntime.sleep(0.4)\nprint(int(input()) * 2)")
    limits = [{"time_ms": 100, "memory_mib": None}, None, '{"time_ms": 5000}']
    comparison = [None, {"type": "json"}, None]
    assert call(reward, [sleepy] * 3, limits=limits, comparison=comparison) == [0, 1, 1]


def test_rows_carry_tests_in_a_datasets_own_shape_and_a_scoring(reward: CodeReward) -> None:
    tests = [{"inputs": ["2", "5"], "outputs": ["4", "7"], "fn_name": None}, '[{"input": "2", "output": "4\\n"}]']
    rewards = call(reward, [RIGHT] * 2, test_cases=None, tests=tests, scoring=[{"type": "all_or_nothing"}, None])
    assert rewards == [0, 1]


@pytest.mark.parametrize(
    ("columns", "word"), [({"test_cases": None}, "neither"), ({"limits": [None]}, "2 completions need as many limits")]
)
def test_a_dataset_without_tests_is_refused(columns: dict[str, Any], word: str, faulty: Any) -> None:
    with pytest.raises(ValueError, match=word):
        call(faulty(), [RIGHT] * 2, **columns)


@pytest.mark.parametrize(
    ("name", "completion"),
    [
        ("a sum of 30,000 terms", fence("print(" + "1+" * 30_000 + "1)")),
        ("lone surrogates", fence("print('\ud800')")),
        ("null bytes", fence("print('\x00')")),
        ("a million backticks", "`" * 1_000_000),
        ("a chat without content", [{"role": "assistant", "content": None}]),
    ],
)
def test_a_degenerate_completion_costs_only_itself(name: str, completion: Any, reward: CodeReward) -> None:
    assert call(reward, [RIGHT, completion, PARTLY]) == [1, 0, 1 / 3], name


def test_a_program_as_deep_as_the_interpreter_bears_scores_what_it_should(reward: CodeReward) -> None:
    deep = fence("print(" + "+".join(["int(input())"] + ["0"] * 2_000) + ")")
    assert call(reward, [deep], test_cases=[[{"input": "3", "output": "3"}]]) == [1]


def test_the_function_named_by_its_path_is_set_up_by_the_environment(
    endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_rewards.trl._default", None)
    monkeypatch.setenv("CODE_REWARDS_URL", endpoint.url)
    monkeypatch.setenv("CODE_REWARDS_API_KEY", endpoint.api_key)
    monkeypatch.setenv("CODE_REWARDS_RUN_ID", "named-by-the-environment")
    monkeypatch.setenv("CODE_REWARDS_EXTRACTION", "last")
    try:
        assert call(code_reward, [f"{NOTHING}\n{PARTLY}\n{RIGHT}"]) == [1]
        assert "named-by-the-environment" in endpoint.run_ids()
    finally:
        default_reward().client.finish()


def test_trl_takes_both_forms_for_coroutines_of_one_name(reward: CodeReward) -> None:
    assert inspect.iscoroutinefunction(code_reward) and code_reward.__name__ == "code_reward"
    assert inspect.iscoroutinefunction(reward.__call__) and reward.__name__ == "code_reward"


def test_a_copy_in_another_process_would_count_for_the_same_run(reward: CodeReward) -> None:
    copy = pickle.loads(pickle.dumps(reward))
    assert call(copy, [RIGHT]) == [1]
    assert copy.client.run_id == reward.client.run_id


def test_a_fault_that_no_retry_helps_is_masked_and_counted(faulty: Any, proxy: FaultyProxy) -> None:
    results = [{"type": "result", "index": 0, "reward": 1.0, "status": "graded", "passed": 3, "total": 3}]
    results.append({"type": "result", "index": 1, "reward": None, "status": "fault", "fault": LOST})
    summary = {"type": "summary", "rewards": [1.0, None], "usage": USAGE, "request_id": "r"}
    proxy.plan("POST", "/v1/rewards", stream(*results, summary))
    log = Log()
    assert call(faulty(), [RIGHT, PARTLY], log) == [1, None]
    assert log.metrics["e2b/faults"] == 1
    assert log.columns["e2b/verdict"][1] == "fault: worker_lost"


def retryable_null() -> Any:
    result = {"type": "result", "index": 0, "reward": None, "status": "fault", "fault": LATE}
    return stream(result, {"type": "summary", "rewards": [None], "usage": USAGE, "request_id": "r"})


DOWN = problem(503, "no_capacity", "all workers are taken")


@pytest.mark.parametrize("act", [retryable_null(), DOWN])
def test_abort_raises_with_the_cause_when_the_budget_is_spent(act: Any, faulty: Any, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", *[act] * 50)
    with pytest.raises(FaultBudgetSpentError, match=r"one call, 0 s: 1 of 1 .*(too slow|workers are taken)"):
        call(faulty(), [RIGHT])


@pytest.mark.parametrize("act", [retryable_null(), DOWN])
def test_mask_goes_on_until_the_budget_of_the_job(act: Any, faulty: Any, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", *[act] * 50)
    reward = faulty(on_fault="mask", mask_budget_s=5)
    reward.watch.waited_s = -1_000.0
    assert call(reward, [RIGHT]) == [None]
    reward.watch.waited_s = 5.0
    with pytest.raises(FaultBudgetSpentError, match=r"budget of the job, 5 s"):
        call(reward, [RIGHT])


def test_a_passing_fault_is_not_seen(faulty: Any, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", retryable_null(), DOWN)
    assert call(faulty(is_known=True, fault_budget_s=30), [RIGHT]) == [1]


def test_a_task_that_cannot_be_judged_is_told_at_once(faulty: Any) -> None:
    with pytest.raises(InvalidRequestError, match="/tasks/0/test_cases/0/output"):
        call(faulty(is_known=True), [RIGHT], test_cases=[[{"input": "", "output": "not JSON"}]])


def test_the_warning_about_masked_samples_keeps_expected_outputs_to_itself(
    faulty: Any, proxy: FaultyProxy, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("trl.trainer.grpo_trainer")
    proxy.plan("POST", "/v1/rewards", *[DOWN] * 50)
    assert call(faulty(on_fault="mask"), [RIGHT]) == [None]
    logger.warning("[RANK 0] All reward functions returned None for the following kwargs:\n{'test_cases': 'secret'}")
    assert "secret" not in caplog.text
    assert "no reward and move no weight" in caplog.text


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({"CODE_REWARDS_ON_FAULT": "ignore"}, "abort or mask"),
        ({"CODE_REWARDS_WORKERS": "many"}, "CODE_REWARDS_WORKERS must be a number"),
    ],
)
def test_bad_settings_are_refused(environment: dict[str, str], word: str) -> None:
    with pytest.raises(MisconfiguredError, match=word):
        read_settings(environment)


def test_settings_are_read_from_the_environment_and_keep_the_key_to_themselves() -> None:
    settings = read_settings(
        {"CODE_REWARDS_API_KEY": "secret", "CODE_REWARDS_MASK_BUDGET_S": "7", "CODE_REWARDS_URL": ""}
    )
    assert (settings.mask_budget_s, settings.url, settings.on_fault) == (7.0, None, "abort")
    assert "secret" not in repr(settings)
