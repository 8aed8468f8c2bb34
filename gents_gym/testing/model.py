"""Checks the contract of models: predictions, completed tables and beliefs; raises at the first violation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym import registry
from gents_gym.checks import InputError, check_integer
from gents_gym.construct import make_object, make_tasks
from gents_gym.evaluation.environments import get_distribution
from gents_gym.likelihoods import Likelihood
from gents_gym.models.load import PUBLISHED, as_model, is_trained, load_model, missing_parts, resolve_model
from gents_gym.testing.action_model import check_actions
from gents_gym.testing.beliefs import check_beliefs
from gents_gym.testing.believer import Believer, Story
from gents_gym.testing.completions import check_completions
from gents_gym.testing.contract import breach, explained, global_generators_left_alone
from gents_gym.testing.copies import check_copies
from gents_gym.testing.draws import check_draws
from gents_gym.types import ActionModel, Model, TaskDistribution, TaskInfo

N_TASKS, N_ACTIONS, HORIZON = 5, 4, 20


def check_model(
    model: Any | str | Callable[[], Any], tasks: str | TaskDistribution | None = None, *, steps: int = 10
) -> None:
    """Check everything that agents ask of a model, in some seconds, and raise at the first violation.

    How well it predicts is not judged: a constant is a valid model.

    Args:
        model: A model, a class or function that makes one without arguments, or the name of one:
            ``package.module:Class``, optionally with options, a bundled model's id, a preset or a folder.
        tasks: The tasks that it is tried on: a task distribution, or the id of one or of one of our environments,
            optionally with options; None: synthetic tasks, F=2 and D=5, with the model's kind of outcomes.
        steps: Decisions before most checks.

    Raises:
        ContractError: It says what was done, expected and seen, and what to do about it.
    """
    check_integer("steps", steps, 2)
    name = _name(model)
    make = _maker(name, model)
    first = make(None)
    if first is not None:
        _check_likelihood(name, as_model(first).likelihood)
    distribution = _tasks(first, tasks)
    drawn = distribution.sample(0, range(N_TASKS), "train")
    if drawn.horizon < steps + 4:
        raise InputError(f"tasks must have a horizon of at least steps + 4 = {steps + 4}, got {drawn.horizon}")
    played = np.random.default_rng(0).integers(drawn.n_actions - 1, size=(N_TASKS, drawn.horizon))  # never the last
    story = Story(drawn, played, range(N_TASKS))
    info = story.info()
    made = make(info) if first is None else first
    believer = Believer(name, as_model(made))
    if isinstance(made, ActionModel):
        check_actions(name, made, believer.model.likelihood, drawn, steps)
    others = distribution.sample(1, range(N_TASKS), "train")
    check_beliefs(believer, Believer(name, as_model(make(info))), story, others, steps)
    check_copies(believer, story, others, steps)
    check_completions(believer, story, steps)
    check_draws(believer, story, steps)


def _name(model: Any) -> str:
    if isinstance(model, str | Path):
        return str(model)
    name = getattr(model, "__name__", type(model).__name__)
    return "the model" if name == "<lambda>" else str(name)


def _maker(name: str, model: Any) -> Callable[[TaskInfo | None], Any]:
    """Return a function that makes the model for tasks; without tasks it returns None if they determine the model."""
    done, advice = "it was made", "for a class with arguments, pass lambda: MyModel(...)"

    def make(info: TaskInfo | None) -> Any:
        with global_generators_left_alone(name, done, "fit with a generator of your own: np.random.default_rng(0)"):
            if isinstance(model, str | Path):
                made = _make_named(str(model), info)
            else:
                with explained(f"{name} cannot be made", done=done, expected="a model", advice=advice):
                    made = model() if _is_maker(model) else model
        if made is None or isinstance(made, Model | ActionModel):
            return made
        raise breach(
            f"{name} is not a model",
            done=f"it was made: {made!r}",
            expected="an object with start, predict and append, or with begin and the other methods of gents_gym.Model",
            seen=f"it lacks {', '.join(missing_parts(made))}",
            advice="write the missing methods: docs/own_model.md",
        )

    return make


def _is_maker(model: Any) -> bool:
    return isinstance(model, type) or (callable(model) and not isinstance(model, Model | ActionModel))


def _make_named(model: str, info: TaskInfo | None) -> Any:
    if model in PUBLISHED or model in registry.PRESETS:
        return None if info is None else resolve_model(model, info)
    is_plain = ":" in model and not is_trained(model)
    return make_object("model", model, {}, {}) if is_plain else load_model(model)


def _check_likelihood(name: str, likelihood: Any) -> None:
    if not isinstance(likelihood, Likelihood):
        raise breach(
            f"{name} does not say what an outcome is",
            done="its likelihood was read",
            expected="gents_gym.Bernoulli(), Gaussian() or Categorical(n_outcomes)",
            seen=repr(likelihood),
            advice="write likelihood = gents_gym.Gaussian() in the class; without one, outcomes are 0 and 1",
        )


def _tasks(made: Any, tasks: str | TaskDistribution | None) -> TaskDistribution:
    if tasks is None:
        kind = "bernoulli" if made is None else str(as_model(made).likelihood).partition("(")[0]
        return make_tasks("synthetic", n_actions=N_ACTIONS, horizon=HORIZON, outcomes=kind)
    return get_distribution(tasks)
