"""Checks the contract of vector environments and raises at the first violation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv

from gents_gym.checks import InputError
from gents_gym.envs.register import VECTOR_ENTRY_POINT
from gents_gym.evaluation.environments import find_env
from gents_gym.testing.contract import breach, explained, find_difference
from gents_gym.testing.distribution import check_distribution
from gents_gym.testing.tables import check_tables
from gents_gym.testing.watched import SEED_ADVICE, Episode, Watched, half_in_turn

B, SEED = 3, 11
Make = Callable[[int], "VectorEnv[Any, Any, Any]"]


def check_vector_env(env: str | VectorEnv[Any, Any, Any] | Make) -> None:
    """Play a vector environment in every way that an evaluation relies on, and raise at the first violation.

    If its ``unwrapped`` has ``tasks``, as ours have, it is also compared with its tables; if it also has a
    ``distribution``, with what that draws. One of ours named by its id is checked in every autoreset mode.

    Args:
        env: An id, optionally with options, also as "module:id"; an environment that ``gym.make_vec`` made; or a
            function from the number of slots to an environment.

    Raises:
        ContractError: It says what was done, expected and seen, and what to do about it.
    """
    for name, make in _makers(env):
        _check(name, make)
    if (distribution := getattr(make(1).unwrapped, "distribution", None)) is not None:
        check_distribution(name, distribution)


def _makers(env: Any) -> list[tuple[str, Make]]:
    """Return what is checked, and how it is made."""
    if isinstance(env, str):
        spec, options = find_env(env)
        every = (
            spec.vector_entry_point == VECTOR_ENTRY_POINT
            and not {"autoreset_mode", "vectorization_mode"} & options.keys()
        )
        modes = [{"autoreset_mode": mode.value} for mode in AutoresetMode] if every else [{}]
        return [(env, _from_spec(spec, {**options, **mode})) for mode in modes]
    if isinstance(env, VectorEnv):
        if env.spec is None or env.unwrapped is not env:
            rule = "env must come from gym.make_vec without wrappers; otherwise pass a function that makes it"
            raise InputError(f"{rule}: lambda num_envs: ..., got {env!r}")
        spec = copy.deepcopy(env.spec)
        spec.kwargs.pop("num_envs", None)
        return [(spec.id, _from_spec(spec, {}))]
    if not callable(env):
        raise InputError(f"env must be an id, a vector environment or a function that makes one, got {env!r}")
    name = getattr(env, "__name__", type(env).__name__)
    name = "the environment" if name == "<lambda>" else name
    make = explained(
        f"{name} cannot be made",
        done="it was called with a number of slots",
        expected="a gymnasium.vector.VectorEnv",
        advice="pass a function from the number of slots to the environment",
    )(env)
    return [(name, make)]


def _from_spec(spec: EnvSpec, options: dict[str, Any]) -> Make:
    return lambda num_envs: gym.make_vec(copy.deepcopy(spec), num_envs=num_envs, **options)


def _check(name: str, make: Make) -> None:
    envs = Watched(name, make(B), B)
    first = envs.episode(seed=SEED)
    _check_seeds(name, make, envs, first)
    _check_slots(name, make, first)
    _check_actions(name, make, first)
    _check_scribbles(name, make, first)
    _check_autoreset(name, make, first)
    if hasattr(type(envs.envs.unwrapped), "tasks"):
        check_tables(name, lambda: Watched(name, make(B), B), first, SEED)
    if envs.envs.spec is not None and envs.envs.unwrapped is envs.envs:  # a spec does not include wrappers around it
        _check_spec(name, make)


def _same(rule: str, left: Any, right: Any, done: str, advice: str) -> None:
    if difference := find_difference(left, right, "the episode"):
        expected = "the same observations, rewards and infos"
        raise breach(rule, done=done, expected=expected, seen=difference, advice=advice)


def _other(rule: str, first: Episode, others: Iterable[Episode], done: str, advice: str) -> None:
    """Raise if none of the others differs; short tasks without contexts may be equal by chance."""
    if all(find_difference(first.seen, other.seen) is None for other in others):
        expected = "other tasks"
        raise breach(rule, done=done, expected=expected, seen="the same contexts and rewards", advice=advice)


def _check_seeds(name: str, make: Make, envs: Watched, first: Episode) -> None:
    rule, done = f"{name} is not reproducible", f"reset(seed={SEED}) and the same actions"
    new = Watched(name, make(B), B)
    _same(rule, first.answers, new.episode(seed=SEED).answers, f"{done} in a new environment", SEED_ADVICE)
    advice = "reset(seed=...) starts everything again: forget everything of earlier episodes"
    _same(rule, first.answers, envs.episode(seed=SEED).answers, f"{done} in one that has played before", advice)
    advice = "reset() without a seed continues the stream of the last seed, with no new generator"
    without = "reset without a seed after one with it"
    _same(rule, new.episode().answers, envs.episode().answers, f"{without}, in two environments", advice)
    _other(f"{name} plays the same task forever", first, (envs.episode() for _ in range(8)), without, advice)
    others = (envs.episode(seed=SEED + i) for i in range(1, 9))
    _other(f"{name} ignores the seed", first, others, "reset with other seeds", SEED_ADVICE)


def _check_slots(name: str, make: Make, first: Episode) -> None:
    for num_envs in (1, 2):
        fewer = Watched(name, make(num_envs), num_envs).episode(seed=SEED)
        length = fewer.rewards.shape[1]
        among = {key: value[:num_envs] for key, value in first.seen.items()}
        among |= {key: value[:, :length] for key, value in among.items() if key != "features"}
        rule, done = f"{name}: a task depends on the other tasks", f"{num_envs} slots instead of {B}, one seed"
        advice = f"{SEED_ADVICE}; slot i plays task i of a seed first, whatever the number of slots"
        _same(rule, among, fewer.seen, done, advice)


def _check_actions(name: str, make: Make, first: Episode) -> None:
    """Raise if contexts or outcomes depend on earlier actions: all agents must play the same tasks."""
    other = Watched(name, make(B), B).episode(half_in_turn, seed=SEED)
    rule, done = (
        f"{name}: playing changes the task",
        "the same seed was played with other actions at every second decision",
    )
    advice = "draw contexts and the whole table of outcomes beforehand, or in an order that no action changes"
    still = np.ones_like(first.steady)
    _same(f"{name}: action features must stay", first.steady, still, "one episode", "show the same in every step")
    _same(rule, (first.features, first.contexts), (other.features, other.contexts), done, advice)
    alike = first.actions == other.actions
    _same(rule, first.outcomes[alike], other.outcomes[alike], f"{done}; the others' outcomes were compared", advice)


def _check_scribbles(name: str, make: Make, first: Episode) -> None:
    written = Watched(name, make(B), B, scribble=True).episode(seed=SEED)
    advice = "return copies of the environment's own arrays, or read-only views"
    done = "arrays that reset and step had returned were overwritten by the caller"
    _same(f"{name} returns its own state", first.seen, written.seen, done, advice)


def _check_autoreset(name: str, make: Make, first: Episode) -> None:
    """Raise unless slots that have ended continue as ``metadata["autoreset_mode"]`` says."""
    envs = Watched(name, make(B), B)
    length = envs.episode(seed=SEED).rewards.shape[1]
    *_, terminated, truncated, info = first.answers[-1]
    ended = terminated | truncated

    def demand(holds: bool, expected: str, seen: str) -> None:
        if not holds:
            done = f"every slot was played to its end, after {length} decisions, in the mode {envs.mode.value}"
            advice = f"see Gymnasium on {envs.mode}, or name the right mode in metadata['autoreset_mode']"
            raise breach(f"{name} does not end as declared", done=done, expected=expected, seen=seen, advice=advice)

    if envs.mode is AutoresetMode.SAME_STEP:
        final = info.get("final_obs", np.full(B, None))
        kept = [final[i] in envs.envs.single_observation_space for i in np.flatnonzero(ended)]
        demand(all(kept), "info['final_obs'] with the last observation of each slot that ended", f"info {sorted(info)}")
        again = envs.step(np.zeros(B, np.int64))
        demand(length == 1 or not again[2][ended].any(), "a new episode in the same step", "a slot that ends again")
    elif envs.mode is AutoresetMode.NEXT_STEP:
        demand("final_obs" not in info, "the last observation itself, no info['final_obs']", f"info {sorted(info)}")
        _, reward, *flags, _ = envs.step(np.zeros(B, np.int64))
        quiet = not reward[ended].any() and not (flags[0] | flags[1])[ended].any()
        demand(quiet, "a step that only resets: reward 0 and no end", f"rewards {reward}, ends {flags[0] | flags[1]}")
    else:
        demand("final_obs" not in info, "the last observation itself, no info['final_obs']", f"info {sorted(info)}")
        envs.reset(options={"reset_mask": ended})
        again = envs.step(np.zeros(B, np.int64))
        demand(length == 1 or not again[2][ended].any(), "a new episode after reset", "a slot that ends again")


def _check_spec(name: str, make: Make) -> None:
    envs = make(B)
    assert envs.spec is not None
    try:
        again = gym.make_vec(EnvSpec.from_json(envs.spec.to_json()))
        difference = find_difference(envs.reset(seed=SEED), again.reset(seed=SEED), "reset's answer")
    except Exception as error:
        difference = f"{type(error).__name__}: {error}"
    if difference:
        raise breach(
            f"{name}: its spec cannot be serialised",
            done="gym.make_vec(EnvSpec.from_json(env.spec.to_json())), as results and workers need it",
            expected="the same environment",
            seen=difference,
            advice="register entry points as strings and arguments as plain JSON values: gents_gym.register_tasks does",
        )
