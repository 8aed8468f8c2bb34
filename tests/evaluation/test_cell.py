import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from gents_gym import EvaluationConfig, InputError, load_model
from gents_gym.evaluation import cell as module
from gents_gym.evaluation.cell import play
from gents_gym.evaluation.grid import cells, plan
from gents_gym.tasks.synthetic import Synthetic

SMALL = "gents_gym/Synthetic-v0(horizon=20, n_actions=3)"
THEIRS = """
import time
from gents_gym.checks import TaskError
import numpy as np


class Wild:
    def __init__(self, how):
        self.how = how

    def reset(self, info, rngs):
        self.n_tasks, self.steps = len(info), 0

    def act(self, context):
        self.steps += 1
        actions = np.zeros(self.n_tasks, int)
        if self.steps == 4:
            if self.how == "raise":
                raise RuntimeError("two\\nlines")
            if self.how == "exit":
                raise SystemExit(1)
            if self.how == "nan":
                actions = actions.astype(float)
            actions[2] = np.nan if self.how == "nan" else 3
        return actions

    def observe(self, context, action, outcome):
        pass


class One:
    def reset(self, info, rng):
        self.steps = 0

    def act(self, observation):
        self.steps += 1
        return 1 // (5 - self.steps)


class Hoarder:  # forgets nothing between blocks
    seen = 0

    def reset(self, info, rngs):
        self.n_tasks = len(info)

    def act(self, context):
        self.seen += 1
        return np.full(self.n_tasks, self.seen % 3)

    def observe(self, context, action, outcome):
        pass

    def fit(self, rows):
        self.rows = len(rows)
        return self


class SlowStart(Hoarder):
    compiled = False

    def act(self, context):
        if not SlowStart.compiled:
            time.sleep(0.5)
            SlowStart.compiled = True
        return super().act(context)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Odd(Wild):
    def act(self, context):
        error = TaskError("of the second task", 1)
        if self.how == "mute":
            raise Mute
        raise error from error if self.how == "itself" else ValueError("never raised")
"""


@pytest.fixture(autouse=True)
def theirs(tmp_path, monkeypatch):
    (tmp_path / "their_cells.py").write_text(THEIRS)
    monkeypatch.syspath_prepend(tmp_path)


def grid(*agents, **changes):
    settings = {"env": (SMALL,), "tasks": 9, "block": 5, "training_actions": 30, **changes}
    return cells(plan(EvaluationConfig(agents, **settings)))


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (
            "their_cells:Wild(how=raise)",
            r"tasks 5 to 8 of .* step 4: RuntimeError: two lines \(their_cells.*line 19\)",
        ),
        ("their_cells:Wild(how=exit)", r"tasks 5 to 8 of .* step 4: SystemExit: 1 \(their_cells.py, line 21\)"),
        ("their_cells:Wild(how=nan)", r"task 7 of .* step 4: action must be a whole number, got nan"),
        ("their_cells:Wild(how=range)", r"task 7 of .* step 4: action must lie in \[0, 3\), got 3"),
        ("their_cells:Odd(how=mute)", r"tasks 5 to 8 of .* step 1: Mute \(their_cells.py, line 77\)$"),
        ("their_cells:Odd(how=itself)", r"task 6 of .* step 1: of the second task$"),
        ("their_cells:Odd(how=never)", r"task 6 of .* step 1: of the second task$"),
        ("per-task(agent=their_cells:One)", r"task 5 of .* step 5: ZeroDivisionError: .* \(their_cells.py, line 37\)"),
    ],
)
def test_what_fails_names_agent_task_and_step(agent, message):
    played = play(grid(agent)[1])
    assert re.search(message, played.error), played.error
    assert f"agent {agent!r} failed on" in played.error
    assert "\n" not in played.error
    assert played.data == b""


def test_agents_are_fitted_to_rows_of_the_train_split_once_for_all_blocks(monkeypatch):
    asked = []
    original = Synthetic.sample_actions

    def spy(self, seed, indices, n_rows, split="train"):
        asked.append((seed, len(indices), n_rows, split))
        return original(self, seed, indices, n_rows, split)

    monkeypatch.setattr(Synthetic, "sample_actions", spy)
    module._fitted.cache_clear()
    module._rows.cache_clear()
    played = [play(cell) for cell in grid("lints(prior=fitted)", "lints(prior=fitted, intercept=True)", seed=3)]
    assert all(each.error is None for each in played)
    assert asked == [(3, 30, 1000, "train")]


def test_blocks_carry_nothing_over():
    first, second = grid("their_cells:Hoarder")
    forward = [play(first).data, play(second).data]
    backward = [play(second).data, play(first).data]
    assert forward == backward[::-1]


def test_a_worker_of_other_versions_weights_or_code_refuses(monkeypatch):
    (cell,) = grid("greedy", tasks=2)
    monkeypatch.setattr(module, "versions", lambda: {"numpy": "0"})
    assert "a worker must have the run's versions" in play(cell).error
    monkeypatch.undo()
    monkeypatch.setattr(module, "weights_hash", lambda agent: "0")
    assert "a worker must have the run's weights" in play(cell).error
    monkeypatch.undo()
    monkeypatch.setattr(module, "code_hashes", lambda *specs: {"mine": "0"})
    assert "a worker must have the run's code, {}, got {'mine': '0'}" in play(cell).error


def test_a_worker_that_resolves_to_another_policy_class_refuses():
    (cell,) = grid("ts-gen", tasks=2)
    assert cell.resolved == "logistic"
    assert play(cell).error is None
    other = replace(cell, resolved="features(base=logistic)")
    assert "the run's policy class, features(base=logistic), got logistic" in play(other).error


def test_a_worker_whose_owner_is_gone_stops(monkeypatch):
    (cell,) = grid("random", tasks=2)

    class Stopped(BaseException):
        pass

    def stop(status):
        raise Stopped

    monkeypatch.setattr(module.os, "_exit", stop)
    with pytest.raises(Stopped):
        play(cell, owner=-1)
    assert play(cell, owner=module.os.getpid()).error is None


def test_the_agents_own_time_is_told():
    (cell,) = grid("ts-gen(samples=2)", tasks=2)
    (quick,) = grid("random", tasks=2)
    play(cell)  # compiles
    assert play(cell).seconds > play(quick).seconds > 0
    assert np.isfinite(play(quick).seconds)


def test_what_happens_once_is_not_in_the_time_of_decisions():
    (cell,) = grid("their_cells:SlowStart", tasks=2)
    played = play(cell)
    assert played.error is None
    assert played.seconds < 0.5


TRAPS = """
import numpy as np
import gents_gym

AT = {at!r}  # the first entry of a context of one task, which nobody else meets


class Trap:
    def start(self, action_features):
        return np.zeros((len(action_features), 1))

    def predict(self, state, context):
        return np.where(context[:, 0] == np.float32(AT), np.nan, 0.5)

    def append(self, state, context, outcome, where=None):
        return state


class Whole:  # a model with a belief of its own
    likelihood = gents_gym.Bernoulli()

    def context_features(self, contexts):
        return None

    def action_context_features(self, action_features, contexts):
        shape = np.broadcast_shapes(action_features.shape[:-1], contexts.shape[:-1])
        return np.where(np.broadcast_to(contexts[..., 0], shape) == np.float32(AT), np.nan, 1.0)[..., None]

    def begin(self, info, rngs):
        belief = gents_gym.load_model("synthetic-filter").begin(info, rngs)
        expected, complete = belief.expected, belief.complete

        def spoilt_expected(context):
            found = expected(context)
            found[context[:, 0] == np.float32(AT)] = np.nan
            return found

        def spoilt_complete(context, *options):
            tables = complete(context, *options)
            tables.outcomes[context[:, 0] == np.float32(AT), -1] = np.nan
            return tables

        belief.expected, belief.complete = spoilt_expected, spoilt_complete
        return belief
"""
ON_MODELS = (
    "ts-gen(samples=2, {})",
    "gen-ucb(m=2, {})",
    "gen-kg(size=4, {})",
    "greedy({})",
    "epsilon-greedy({})",
    "softmax({})",
)


@pytest.mark.parametrize("block", [3, 7])
@pytest.mark.parametrize(
    "agent",
    [
        *(agent.format(f"model=their_traps:{model}") for model in ("Trap", "Whole") for agent in ON_MODELS),
        "neural-linear-ts(model=their_traps:Whole)",
    ],
)
def test_a_prediction_of_nan_ends_the_cell_with_its_task_and_step(agent, block, tmp_path, monkeypatch):
    at = float(Synthetic(horizon=20, n_actions=3).sample(0, [2]).contexts[0, 2, 0])  # task 2, step 3
    (tmp_path / "their_traps.py").write_text(TRAPS.format(at=at))
    played = play(grid(agent, tasks=7, block=block)[0])
    assert played.error.startswith(f"agent {agent!r} failed on task 2 of {SMALL!r} at step 3: ")
    assert re.search("must be (finite|probabilities).* got nan", played.error)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of overflows
@pytest.mark.parametrize("name", ["filter", "filter-gaussian", "filter-categorical", "paper"])
def test_weights_that_are_finite_but_absurd_are_refused_with_agent_task_and_step(name, tmp_path):
    model = load_model(f"synthetic-{name}")
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(weights.sign() * 1e38)
    model.save_pretrained(tmp_path / "absurd")
    env = f"gents_gym/Synthetic-v0(horizon=5, outcomes={(name + '-bernoulli').split('-')[1]})"
    for agent in (*ON_MODELS, "neural-linear-ts({})"):
        spec = agent.format(f"model='{tmp_path / 'absurd'}'")
        with pytest.raises(InputError) as refused:
            plan(EvaluationConfig((spec,), env=(env,), tasks=2))
        said = str(refused.value)
        assert said.startswith(f"agent {spec!r} cannot play {env!r}: ")
        assert re.search("must be (finite|probabilities).* got .*in task 0 at step 1$", said), said
