import itertools

import pytest

from gents_gym.bench import sb3, suite, ts_gen
from gents_gym.bench.benchmarks import run_benchmarks, tabulate
from gents_gym.bench.timing import Rates, Sizes, compete

TINY = Sizes(
    rounds=2, tasks=4, trained=5, batch=4, horizon=12, decisions=3, evaluated=2, starts=1, large=4, live=(3, 6), timed=2
)
KEYS = (
    "ts_gen_batch_speedup",
    "ts_gen_paper_batch_speedup",
    "ts_gen_single_speedup",
    "ts_gen_mlp_speedup",
    "gen_kg_vs_ts_gen",
    "generation_vs_dense_products",
    "ts_gen_features_vs_logistic",
    "ts_gen_least_squares_vs_logistic",
    "import_vs_gymnasium",
    "help_vs_gymnasium",
    "peak_memory_mib",
    "evaluate_two_workers_speedup",
)
RATIOS = {  # what is divided by what
    "vector_env_speedup": ("vector_env_steps_per_second", "single_env_steps_per_second"),
    "delayed_vector_env_share": ("delayed_vector_env_steps_per_second", "vector_env_steps_per_second"),
    "lossy_vector_env_share": ("lossy_vector_env_steps_per_second", "vector_env_steps_per_second"),
    "masked_vector_env_share": ("masked_vector_env_steps_per_second", "vector_env_steps_per_second"),
    "linucb_batch_speedup": ("linucb_batch_decisions_per_second", "linucb_single_decisions_per_second"),
    "linucb_vs_mabwiser": ("linucb_batch_decisions_per_second", "mabwiser_decisions_per_second"),
    "ppo_rollout_speedup": (
        "ppo_rollout_bridged_steps_per_second",
        "ppo_rollout_make_vec_env_steps_per_second",
    ),
    "ts_gen_batch_speedup": ("ts_gen_plain_milliseconds", "ts_gen_filter_milliseconds"),
    "gen_kg_vs_ts_gen": ("gen_kg_milliseconds", "ts_gen_filter_milliseconds"),
    "ts_gen_mlp_speedup": ("ts_gen_sklearn_mlp_milliseconds", "ts_gen_mlp_milliseconds"),
}


@pytest.fixture(scope="module")
def found():
    return run_benchmarks(TINY)


@pytest.mark.slow
def test_benchmarks_report_ratios_of_rates_of_one_run(found):
    assert found["train_filter_epoch_seconds"] > 0
    assert found["train_paper_share_outside_products"] < 1
    assert len(tabulate(found).splitlines()) == len(found)


def test_ratios_divide_the_right_rates(monkeypatch):
    def pretend(contestants, rounds):
        return Rates({name: [float(2**i)] * rounds for i, name in enumerate(contestants)})

    for module in (suite, sb3, ts_gen):
        monkeypatch.setattr(module, "compete", pretend)
    monkeypatch.setattr(ts_gen, "measure_memory", lambda sizes: 0.0)
    found = {**suite.measure_suite(TINY), **sb3.measure_sb3(TINY), **ts_gen.measure_ts_gen(TINY)}
    for ratio, (one, two) in RATIOS.items():
        assert found[ratio] == pytest.approx(found[one] / found[two]), ratio


def test_ratios_are_medians_of_the_rounds_ratios():
    rates = Rates({"one": [1.0, 20.0, 6.0], "two": [2.0, 10.0, 2.0]})
    assert rates.rate("one") == 6
    assert rates.ratio("one", "two") == 2


def test_contestants_run_in_turn():
    seen = []
    contestants = {name: lambda name=name: seen.append(name) or float(len(seen)) for name in "ab"}
    assert compete(contestants, 2).rounds == {"a": [1, 3], "b": [2, 4]}
    assert seen == ["a", "b", "a", "b"]


@pytest.mark.slow
def test_ts_gen_is_measured_against_the_plain_implementation(found):
    assert all(found[key] > 0 for key in KEYS)
    assert found["peak_memory_mib"] > 100  # torch alone is more
    assert {f"ts_gen_exponent_{letter}" for letter in "TAmM"} <= found.keys()


@pytest.mark.slow
def test_live_decisions_are_measured_against_the_bare_agent(found):
    for agent, n in itertools.product(("ts_gen", "gen_kg", "greedy"), TINY.live):
        times = {clock: found[f"live_{agent}_{n}_{clock}_milliseconds"] for clock in ("bare", "decide", "commit")}
        assert 0 < times["commit"] < times["decide"]
        assert 0 < found[f"live_{agent}_{n}_vs_bare"] < found[f"live_{agent}_{n}_committed_vs_bare"]
    assert found["live_ts_gen_6_votes_vs_bare"] > 1


def test_a_missing_library_is_said(monkeypatch):
    monkeypatch.setattr(suite.importlib.util, "find_spec", lambda name: None)
    found = suite.measure_suite(TINY)
    assert found["linucb_vs_mabwiser"] is None
    assert "not installed" in tabulate(found)
    assert sb3.measure_sb3(TINY) == {"ppo_rollout_speedup": None}
