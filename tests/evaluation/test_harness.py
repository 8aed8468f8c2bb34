import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from gents_gym import InputError
from gents_gym.evaluation.harness import EvaluationConfig, count_decisions, evaluate, make_agents, save
from gents_gym.tasks.synthetic import Synthetic

SMALL = "gents_gym/Synthetic-v0(horizon=20, n_actions=3)"


def config(*agents, **changes):
    return EvaluationConfig(agents, **{"env": SMALL, "tasks": 7, "block": 3, "training_actions": 30, **changes})


def test_all_agents_play_the_same_tasks_in_blocks():
    told = []
    found = evaluate(config("linucb", "lints(prior=fitted)", "oracle"), on_step=told.append)
    assert sum(told) == 3 * 7 * 20 == count_decisions(found.config)
    assert [record.indices for record in found.rollouts.values()] == [tuple(range(7))] * 3
    assert [record.privileged for record in found.rollouts.values()] == [False, False, True]
    earned = [record.rewards + record.regret["oracle"] for record in found.rollouts.values()]
    assert np.array_equal(earned[0], earned[1])
    assert np.array_equal(earned[1], earned[2])
    assert len(found.task_hashes) == 3
    tasks = Synthetic(horizon=20, n_actions=3).sample(0, range(3))
    assert found.task_hashes[0] == tasks.content_hash


def test_the_block_size_does_not_show():
    specs = ("linucb", "lints", "lints(prior=fitted)", "random")
    one, other = (evaluate(config(*specs, block=block)) for block in (1, 7))
    for spec in specs:
        assert np.array_equal(one.rollouts[spec].actions, other.rollouts[spec].actions)


def test_another_oracle_is_measured_against():
    plain, other = (
        evaluate(config("random", oracle=oracle)).rollouts["random"] for oracle in (None, "logistic(C=0.01)")
    )
    assert np.array_equal(plain.actions, other.actions)
    assert not np.array_equal(plain.regret["oracle"], other.regret["oracle"])


def test_agents_are_fitted_to_rows_of_the_train_split(monkeypatch):
    asked = []
    original = Synthetic.sample_actions

    def spy(self, seed, indices, n_rows, split="train"):
        asked.append((len(indices), n_rows, split))
        return original(self, seed, indices, n_rows, split)

    monkeypatch.setattr(Synthetic, "sample_actions", spy)
    evaluate(config("lints(prior=fitted)"))
    assert asked == [(30, 1000, "train")]


def test_the_split_is_played():
    test, train = (evaluate(config("linucb", split=split)) for split in ("test", "train"))
    assert test.task_hashes != train.task_hashes


def test_results_read_back_as_they_were(tmp_path):
    found = evaluate(config("linucb", "oracle"))
    save(found, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"results.parquet", "regret.png", "manifest.json"}
    rows = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(rows) == 14
    for row in rows:
        record = found.rollouts[row["agent"]]
        assert row["privileged"] == (row["agent"] == "oracle")
        assert row["env"] == SMALL
        assert row["actions"] == record.actions[row["task"]].tolist()
        for name, steps in record.regret.items():
            assert np.array_equal(np.float32(row[f"regret_{name}"]), np.float32(steps[row["task"]]))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["config"]["agents"] == ["linucb", "oracle"]
    assert manifest["privileged"] == ["oracle"]
    assert manifest["block_sha256"] == found.task_hashes
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_call_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        save(evaluate(config("lints", "random")), tmp_path / name)
    for file in ("results.parquet", "manifest.json", "regret.png"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": 0}, "tasks must be at least 1, got 0"),
        ({"block": 0}, "block must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"training_actions": 1}, "training_actions must be at least 2, got 1"),
        ({"split": "tst"}, "unknown split 'tst'; did you mean 'test'"),
        ({"oracle": "mlpp"}, "unknown policy class 'mlpp'"),
        ({"env": "gents_gym/Sinthetic-v0"}, "env 'gents_gym/Sinthetic-v0' cannot be made: .*Did you mean: `Synthetic`"),
        ({"env": "gents_gym/Synthetic-v0(split=train)"}, "env's options must be of the task, got 'split'"),
        ({"env": "gents_gym/Synthetic-v0(num_envs=3)"}, "env's options must be of the task, got 'num_envs'"),
        ({"env": "gents_gym/Synthetic-v0(reward_fn=3)"}, "reward_fn must map outcomes to rewards, got 3"),
        ({"env": "CartPole-v1"}, "envs must observe 'context' and 'action_features'"),
        ({"env": "nowhere:Env-v0"}, "env 'nowhere:Env-v0' cannot be made: No module named 'nowhere'"),
        ({"oracle": "os:getcwd"}, "policy class 'os:getcwd' must have fit"),
        ({"env": "gents_gym/Synthetic-v0(horizon=0)"}, "horizon must be at least 1, got 0"),
    ],
)
def test_bad_configurations(changes, message):
    with pytest.raises(InputError, match=message):
        make_agents(config("linucb", **changes))


def test_bad_agents():
    with pytest.raises(InputError, match="agents must name at least one agent, got none"):
        evaluate(config())
    with pytest.raises(InputError, match="agents must differ from each other, got linucb linucb"):
        evaluate(config("linucb", "linucb"))
    with pytest.raises(InputError, match="unknown agent 'linucbb'"):
        evaluate(config("linucb", "linucbb"))
