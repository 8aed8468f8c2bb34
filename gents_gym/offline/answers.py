"""Answers to what other agents would have earned: every estimate that a log allows, with its lift over the log."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gents_gym.checks import InputError, check_integer, need
from gents_gym.construct import agent_options, make_agent, parse_spec
from gents_gym.logs.record import Logs
from gents_gym.models.remarks import model_remarks
from gents_gym.offline.config import OfflineConfig
from gents_gym.offline.estimators import Estimate, doubly_robust, interval, ips, mean, pool, snips
from gents_gym.offline.imagined import Imagination, logged_value, play_imagined, read_stream
from gents_gym.offline.overlap import Overlap, measure_overlap
from gents_gym.offline.play import Played, Stream, join, play, split_streams, watch
from gents_gym.offline.trained import learned_rows
from gents_gym.offline.verdicts import Answer, sorted_answers
from gents_gym.randomness import stream as random_stream
from gents_gym.types import Agent, Privileged

if TYPE_CHECKING:
    import pandas as pd

IMPUTED = 64  # rows that TS-Gen imputes if its spec does not say: a log has no horizon


@dataclass(frozen=True, eq=False)
class Answers:
    """What the log says of each agent."""

    logs: Logs
    config: OfflineConfig
    logged: Estimate  # the value of the policy that made the log, on the rows that evaluate
    imagined_logged: Estimate | None  # what the model imagines of it
    answers: tuple[Answer, ...]
    overlaps: dict[str, Overlap]  # by agent; {} without propensities
    model: str | None = None
    trained_on: bool = False  # whether the model learned from rows that evaluate
    on_model: frozenset[str] = frozenset()  # agents that use the model
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by agent, on its model

    def __repr__(self) -> str:
        """Return a line without arrays."""
        agents = ", ".join(dict.fromkeys(answer.agent for answer in self.answers))
        return f"Answers({self.logs!r}, logged policy: {self.logged!r}, {len(self.answers)} answers for {agents})"

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame with a row for each estimate, agent by agent, the most trusted method first."""
        pandas = need("pandas", "to_pandas", extra="notebook")
        return pandas.DataFrame([asdict(answer) for answer in sorted_answers(self.answers)])


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """What all agents share."""

    logs: Logs
    config: OfflineConfig
    streams: Sequence[Stream]
    reads: Sequence[Imagination]  # of the streams; empty without a model
    tables: Sequence[np.ndarray]  # imagined outcomes of each, (tables, T, A); empty without

    @property
    def least(self) -> float | None:
        """The least propensity of the log; None without propensities."""
        return None if self.logs.propensities is None else float(self.logs.propensities.min())

    @property
    def replays(self) -> bool:
        """Whether agents play the log's rows."""
        return self.logs.propensities is not None or self.config.fixed is not None

    @property
    def imagines(self) -> bool:
        """Whether agents play imagined tables."""
        return bool(self.tables) and self.config.fixed is None

    @property
    def n_parts(self) -> int:
        """The number of an agent's plays."""
        return self.config.n_orders * self.replays + self.imagines

    def orders(self) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """Return, for each order and stream, the places of rows to watch and of rows to play."""
        found = []
        for number in range(self.config.n_orders):
            rng = random_stream(self.config.seed, "offline", 2 + number)
            parts = []
            for stream in self.streams:
                n_rows = len(stream.rows)
                watched = 0 if self.config.fixed is None else round(self.config.fixed * n_rows)
                rest = np.arange(watched, n_rows)
                parts.append((np.arange(watched), rest if number == 0 else rng.permutation(rest)))
            found.append(parts)
        return found

    def play(self, make: Callable[[], Agent], number: int, order: list[tuple[np.ndarray, np.ndarray]]) -> Played:
        """Return what an agent did in one order of the rows, on all streams."""
        parts = []
        for i, (stream, (watched, rows)) in enumerate(zip(self.streams, order, strict=True)):
            place = number * len(self.streams) + i
            agent = make()
            agent.reset(stream.info, [random_stream(self.config.seed, "agent", place)])
            watch(agent, stream.choose(watched))
            predicted = self.reads[i].predicted[rows] if self.reads else None
            luck = random_stream(self.config.seed, "offline", place, "train")
            parts.append(play(agent, stream.choose(rows), luck, predicted, self.config.fixed is None, self.least))
        return join(parts, len(self.logs.action_features), [stream.own for stream in self.streams])


def evaluate_offline(
    logs: Logs,
    agents: Sequence[str] | Mapping[str, str | Agent],
    model: Any = None,
    config: OfflineConfig | None = None,
    trained_on: bool | None = None,
    on_progress: Callable[[str, float], None] | None = None,
) -> Answers:
    """Answer what agents would have earned instead of the policy that made the log.

    Args:
        logs: The log. Without propensities, only the model can answer.
        agents: Ids, options behind them, or agents by any name, which are reset for every task. Ids of agents on a
            model get ``model``, and TS-Gen imputes 64 rows, unless they say otherwise.
        model: The model that predicts rewards and imagines tables, or what names it; None: none.
        config: How to evaluate.
        trained_on: Whether the model learned from rows that evaluate; there are no conclusions from it then. None:
            its folder says so, if it has one.
        on_progress: Called with the part that begins, and the share of the agents' plays that are done.
    """
    config = config or OfflineConfig()
    if not agents:
        raise InputError("agents must name at least one, got none")
    if logs.propensities is None and model is None:
        rule = "a log without propensities must come with a model"
        raise InputError(f'{rule}, got neither: name the column of propensities, or "uniform"')
    first = _first_row(logs, config.last)
    trained_on = learned_rows(model, logs) > first if trained_on is None else trained_on
    logs = logs.choose(np.arange(first, len(logs)))
    named = agents if isinstance(agents, Mapping) else {name: name for name in agents}
    makers = {name: agent_maker(agent, model) for name, agent in named.items()}
    streams = split_streams(logs)
    for stream in streams:
        check_integer("the number of actions of a task", len(stream.action_features), 2)
    remarks = {name: _check_playable(name, make(), streams[0]) for name, make in makers.items()}
    numbered = [] if model is None else list(enumerate(streams))
    tell = on_progress or (lambda _part, _share: None)
    tell("reading the log", 0.0)
    reads = [read_stream(model, one, random_stream(config.seed, "offline model", i)) for i, one in numbered]
    tell("imagining tables", 0.0)
    tables = [read.draw(config.tables) for read in reads] if config.tables else []
    shared = _Evaluation(logs, config, streams, reads, tables)
    orders = shared.orders()
    rows = np.sort(np.concatenate([stream.rows[own] for stream, (_, own) in zip(streams, orders[0], strict=True)]))
    logged = mean(logs.outcomes[rows])
    imagined = _pooled([logged_value(read, table) for read, table in zip(reads, tables, strict=False)])
    answers, overlaps = [], {}
    over = itertools.count()

    def begin(part: str) -> None:
        tell(part, next(over) / (shared.n_parts * len(makers)))

    for name, make in makers.items():
        found, overlap = _answer(name, make, shared, orders, logged, imagined, begin)
        answers += found
        if overlap is not None:
            overlaps[name] = overlap
    label = str(model) if isinstance(model, str | Path) else None if model is None else type(model).__name__
    using = frozenset(name for name, agent in named.items() if _uses(agent, model))
    return Answers(logs, config, logged, imagined, tuple(answers), overlaps, label, trained_on, using, remarks)


def _first_row(logs: Logs, last: float) -> int:
    """Return the first row of the latest share ``last`` of a log."""
    return len(logs) - max(round(last * len(logs)), 1)


def agent_maker(spec: str | Agent, model: Any) -> Callable[[], Agent]:
    """Return a function that makes an agent of ``spec``, with the defaults that a log calls for, or gives it back."""
    if not isinstance(spec, str):
        return lambda: spec
    name, given = parse_spec(spec)
    known = agent_options(name)
    defaults = {"model": str(model) if isinstance(model, Path) else model, "m": IMPUTED}
    own = {key: value for key, value in defaults.items() if key in known and key not in given and value is not None}
    return lambda: make_agent(spec, **own)


def _uses(spec: str | Agent, model: Any) -> bool:
    """Return whether an agent gets the model; what an object has in it is not known."""
    if model is None or not isinstance(spec, str):
        return False
    name, given = parse_spec(spec)
    return "model" in agent_options(name) and str(given.get("model", model)) == str(model)


def _check_playable(name: str, agent: Agent, stream: Stream) -> tuple[str, ...]:
    """Return remarks on the model of an agent; raise if the agent cannot play a log."""
    if isinstance(agent, Privileged):
        raise InputError(f"agent {name!r} needs the tables of tasks, and a log has none")
    agent.reset(stream.info, [np.random.default_rng(0)])
    return model_remarks(getattr(agent, "model", None), stream.info)


def _answer(
    name: str,
    make: Callable[[], Agent],
    shared: _Evaluation,
    orders: list[list[tuple[np.ndarray, np.ndarray]]],
    logged: Estimate,
    imagined_logged: Estimate | None,
    begin: Callable[[str], None],
) -> tuple[list[Answer], Overlap | None]:
    """Return all estimates for one agent, and how its plays overlap with the log's; ``begin`` announces each play."""
    logs, config = shared.logs, shared.config
    answers, overlap = [], None
    if shared.replays:
        plays = []
        for number, order in enumerate(orders):
            begin(f"{name} plays order {number + 1} of {len(orders)}")
            plays.append(shared.play(make, number, order))
        estimates = [_estimates(played, logs, shared) for played in plays]
        for method in estimates[0]:
            if all(method in found for found in estimates):
                each = [found[method] for found in estimates]
                answers.append(_row(name, method, each, logged, plays))
        if logs.propensities is not None:
            overlap = measure_overlap(plays, logs)
    if shared.imagines:
        begin(f"{name} plays imagined tables")
        each = []
        for i, (read, table) in enumerate(zip(shared.reads, shared.tables, strict=True)):
            places = range(i * config.tables, (i + 1) * config.tables)
            rngs = [random_stream(config.seed, "agent", place, "validation") for place in places]
            each.append(play_imagined(make(), read, table, rngs))
        value = _pooled(each)
        assert value is not None
        assert imagined_logged is not None
        low, high = value.interval
        lift = value.minus(imagined_logged)
        n_decisions = sum(len(read.picked) for read in shared.reads)
        answers.append(Answer(name, "imagined", value.value, low, high, lift.value, *lift.interval, n_decisions))
    return answers, overlap


def _estimates(played: Played, logs: Logs, shared: _Evaluation) -> dict[str, Estimate]:
    """Return the estimates that one order allows, by method."""
    rewards = logs.outcomes[played.rows].astype(np.float64)
    found: dict[str, Estimate] = {}
    if shared.reads:
        found["direct"] = mean(played.direct)
    if logs.propensities is None:
        return found
    weights = played.target / logs.propensities[played.rows]
    if played.accepted.sum() > 1:
        found["replay"] = snips(played.accepted, rewards)
    found["IPS"] = ips(weights, rewards)
    if weights.any():
        found["SNIPS"] = snips(weights, rewards)
    if shared.reads:
        found["doubly robust"] = doubly_robust(
            weights, rewards, _logged_predictions(shared)[played.rows], played.direct
        )
    return found


def _logged_predictions(shared: _Evaluation) -> np.ndarray:
    """Return the predicted rewards of the logged actions, (n,)."""
    found = np.empty(len(shared.logs))
    for stream, read in zip(shared.streams, shared.reads, strict=True):
        found[stream.rows] = read.predicted[np.arange(len(stream.rows)), stream.actions]
    return found


def _row(name: str, method: str, each: Sequence[Estimate], logged: Estimate, plays: Sequence[Played]) -> Answer:
    value, error = pool(each)
    lift, lift_error = pool([estimate.minus(logged) for estimate in each])
    rows = len(logged.influence)
    used = float(np.mean([played.accepted.sum() for played in plays])) if method == "replay" else rows
    lifted = (lift, *interval(lift, lift_error, used))
    return Answer(name, method, value, *interval(value, error, used), *lifted, round(used))


def _pooled(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the mean over tasks of estimates whose rows are the same tables; None of none."""
    if not estimates:
        return None
    values, influences = ([getattr(one, name) for one in estimates] for name in ("value", "influence"))
    return Estimate(float(np.mean(values)), np.mean(influences, axis=0))
