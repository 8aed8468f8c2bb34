"""The command bounds, end to end at a small size."""

import json

import pytest

from gents_gym.tasks.synthetic import Synthetic

SMALL = ("--tasks", 2, "--draws", 6, "--loss-actions", 3, "--dimension", 3)
ENV = "gents_gym/Synthetic-v0(n_actions=2, horizon=8)"


def test_bounds_are_printed_and_drawn(run_command, capsys, tmp_path):
    evaluated = ("--env", ENV, "--tasks", 2, "--workers", 1, "--agents", "random")
    assert run_command("evaluate", *evaluated, "--out", tmp_path / "played") == 0
    capsys.readouterr()
    out = tmp_path / "out"
    command = ("bounds", *SMALL, "--env", ENV, "--horizons", 4, 8, "--actions", 2, 3, "--models", "filter")
    assert run_command(*command, "--results", tmp_path / "played", "--out", out) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Theorem 1 is not vacuous at T=8, A=2, d=3: 0.75 per decision")
    for text in (
        "outcomes given contexts",
        "Gaussian contexts",
        ", random: ",
        "TS-Gen on filter: ",
        "information ratio",
    ):
        assert text in shown
    assert {path.name for path in out.iterdir()} == {"bounds.json", "bounds.png", "matching.png", "measures.png"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in out.glob("*.png"))
    told = json.loads((out / "bounds.json").read_text())
    assert [point["horizon"] for point in told["points"]] == [4, 8, 8]
    assert told["steps"] == [1, 2, 5, 8]
    assert run_command(*command, "--out", out) == 2
    assert "out must be a new or empty folder" in capsys.readouterr().err


def test_formulas_alone_say_first_that_the_bound_is_vacuous(run_command, capsys):
    assert run_command("bounds", "--no-measured") == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        "Theorem 1 is vacuous at T=500, A=10, d=60: 1.77 per decision, with Proposition 2's entropy"
    )
    assert "entropy of 312 nats, and no regret is above 1" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--env", "gents_gym/Synthetic-v0(horizon=60)"), "horizon must be above the dimension d=60"),
        (("--env", ENV, "--horizons", 3, "--dimension", 3), "horizon must be above the dimension d=3"),
        (("--models", "news-filter"), "model must be trained on tasks with 2 action features"),
        (("--models", "filtr"), "unknown model"),
        (("--env", "gents_gym/Synthetic-v0(outcomes=gaussian)"), "env must have outcomes 0 and 1"),
        (("--tasks", 1), "tasks must be at least 2, got 1"),
        (("--results", "nowhere"), "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(run_command, capsys, tmp_path, arguments, message):
    assert run_command("bounds", *arguments, "--out", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


class Hidden:
    """A setting that does not publish its truth."""

    def sample(self, seed, indices, split="test"):
        return Synthetic(horizon=100).sample(seed, indices, split)


def test_an_environment_must_publish_its_truth(run_command, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("gents_gym.cli.bounds.env_distribution", lambda env: Hidden())
    assert run_command("bounds", "--out", tmp_path / "out") == 2
    assert "exact is p* of settings that publish their truth" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
