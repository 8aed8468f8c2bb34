import pytest

from gents_gym.bench import sb3, suite
from gents_gym.bench.benchmarks import run_benchmarks, tabulate
from gents_gym.bench.timing import Sizes

TINY = Sizes(rounds=2, tasks=4, trained=5, batch=4, horizon=12, decisions=3, evaluated=2, large=4)
KEYS = (
    "ts_gen_batch_speedup",
    "ts_gen_paper_batch_speedup",
    "ts_gen_single_speedup",
    "ts_gen_mlp_speedup",
    "generation_ceiling_share",
    "peak_memory_mib",
    "evaluate_two_workers_speedup",
)


@pytest.fixture(scope="module")
def found():
    return run_benchmarks(TINY)


def test_benchmarks_report_ratios_of_rates_of_one_run(found):
    assert found["train_filter_epoch_seconds"] > 0
    assert found["train_paper_share_outside_products"] < 1
    assert found["vector_env_speedup"] == pytest.approx(
        found["vector_env_steps_per_second"] / found["single_env_steps_per_second"]
    )
    assert found["linucb_batch_speedup"] == pytest.approx(
        found["linucb_batch_decisions_per_second"] / found["linucb_single_decisions_per_second"]
    )
    assert found["linucb_vs_mabwiser"] == pytest.approx(
        found["linucb_batch_decisions_per_second"] / found["mabwiser_decisions_per_second"]
    )
    assert found["ppo_rollout_speedup"] == pytest.approx(
        found["ppo_rollout_bridged_steps_per_second"] / found["ppo_rollout_make_vec_env_steps_per_second"]
    )
    assert len(tabulate(found).splitlines()) == len(found)


def test_ts_gen_is_measured_against_the_plain_implementation(found):
    assert all(found[key] > 0 for key in KEYS)
    assert found["ts_gen_batch_speedup"] == pytest.approx(
        found["ts_gen_plain_milliseconds"] / found["ts_gen_filter_milliseconds"]
    )
    assert found["ts_gen_mlp_speedup"] == pytest.approx(
        found["ts_gen_sklearn_mlp_milliseconds"] / found["ts_gen_mlp_milliseconds"]
    )
    assert found["peak_memory_mib"] > 100  # torch alone is more
    assert {f"ts_gen_exponent_{letter}" for letter in "TAmM"} <= found.keys()


def test_a_missing_library_is_said(monkeypatch):
    monkeypatch.setattr(suite.importlib.util, "find_spec", lambda name: None)
    found = suite.measure_suite(TINY)
    assert found["linucb_vs_mabwiser"] is None
    assert "not installed" in tabulate(found)
    assert sb3.measure_sb3(TINY) == {"ppo_rollout_speedup": None}
