import pytest

from gents_gym import bench


def test_benchmarks_report_ratios_of_rates_of_one_run(monkeypatch):
    monkeypatch.setattr(bench, "B", 4)
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "TRAINED", 5)
    monkeypatch.setattr(bench, "EVALUATED", 2)
    found = bench.run_benchmarks()
    assert found["train_filter_epoch_seconds"] > 0
    assert 0 < found["train_paper_share_outside_products"] < 1
    assert found["vector_env_speedup"] == pytest.approx(
        found["vector_env_steps_per_second"] / found["single_env_steps_per_second"]
    )
    assert found["linucb_batch_speedup"] == pytest.approx(
        found["linucb_batch_decisions_per_second"] / found["linucb_single_decisions_per_second"]
    )
    assert found["linucb_vs_mabwiser"] == pytest.approx(
        found["linucb_batch_decisions_per_second"] / found["mabwiser_decisions_per_second"]
    )
    assert found["evaluate_two_workers_speedup"] > 0
    assert len(bench.report(found).splitlines()) == len(found)


def test_a_missing_library_is_said(monkeypatch):
    monkeypatch.setattr(bench, "B", 2)
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "TRAINED", 5)
    monkeypatch.setattr(bench, "_two_workers", lambda: 2.0)
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None)
    found = bench.run_benchmarks()
    assert found["linucb_vs_mabwiser"] is None
    assert "not installed" in bench.report(found)
