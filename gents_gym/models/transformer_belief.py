"""The belief of a transformer: the cache of what was observed becomes all the verbs that agents use."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gents_gym.checks import InputError, TaskError, check_array, check_integer, check_rngs
from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.belief import check_columns, check_likelihood, check_tasks, observed_cells, place_columns
from gents_gym.models.contexts import check_contexts, stack
from gents_gym.models.ledger import KEPT, Ledger
from gents_gym.models.lookahead import find_outlook
from gents_gym.models.picked import Bank, imagine
from gents_gym.models.transformer_cache import Cache, Sequences
from gents_gym.numerics.rounds import rounds
from gents_gym.types import Completion, Feedback, Outlook, TaskInfo

if TYPE_CHECKING:
    from gents_gym.models.transformer import TransformerModel

ROOM = 1 << 27  # bytes of generated rows at once; more tasks go one part after the other


class TransformerBelief:
    """What a transformer believes of B tasks.

    The keys and values of observed rows are computed when outcomes arrive. All that is predicted or generated at a
    decision reads the same ones: M draws of a task's A actions copy the last page of them at most. Each generated row
    costs one pass of two tokens, the observation before it and its own query.
    """

    def __init__(self, model: "TransformerModel", info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start with empty histories."""
        check_likelihood(model.likelihood, info)
        features = check_array("action_features", info.action_features, "(B, A, F)", (len(info), info.n_actions, -1))
        if info.horizon is not None and info.horizon > model.config.longest:
            rule = f"horizon must be at most {model.config.longest} for this model, its longest history"
            raise InputError(f"{rule}, got {info.horizon}")
        self._model, self._info, self._rngs = model, info, check_rngs(rngs, len(info))
        self._ledger = Ledger(info, lambda contexts: contexts)
        urn, bank = float(model.urn), model.bank.numpy()[:, : info.context_dim]  # empty if contexts are padded
        self._bank = Bank(bank, bank, 1 / urn - 1 if urn > 0 else math.inf)
        with torch.no_grad():
            self._cache = Cache(model, torch.tensor(features))

    def expected(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        """Return mean rewards, (B, D) to (B, A), or (B, C, D) to (B, C, A); of ``actions`` (B, n) alone if given."""
        columns = self._columns(actions)
        places = torch.tensor(self._ledger.check_contexts(contexts))  # (B, C, D)
        with torch.no_grad():
            tokens = self._queries(columns, places[:, None].expand(-1, columns.shape[1], -1, -1))  # (B, n, C, W)
            found = self._run(tokens, self._cache.sequences(columns), False)  # (B, n, C, ...)
        means = self._model.likelihood.expected_reward(self._info.reward_fn, found).swapaxes(1, 2)
        return means if np.ndim(contexts) == 3 else means[:, 0]

    def variance(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray | None:
        """Return the variance of those means under the belief, in the same shapes; None unless outcomes are binary.

        Given its chance, two outcomes in one context are independent. So the chance's variance is the covariance of
        the two, p (1 - p) (p₁ - p₀), where p_y is the prediction after an imagined outcome y.
        """
        if self._model.likelihood != BERNOULLI:
            return None
        columns = self._columns(actions)  # (B, n)
        places = torch.tensor(self._ledger.check_contexts(contexts))  # (B, C, D)
        shape = (*columns.shape, places.shape[1])
        if not shape[2]:
            return np.zeros((shape[0], 0, shape[1]))
        asked = places[:, None].expand(-1, shape[1], -1, -1)  # (B, n, C, D)
        own = columns.repeat(2 * shape[2], 1)  # (B, n·C·2)
        outcomes = torch.tensor([0.0, 1.0]).repeat(shape[0], shape[1] * shape[2])  # (B, n·C·2)
        with torch.no_grad():
            chances = self._run(self._queries(columns, asked), self._cache.sequences(columns), False)  # (B, n, C)
            found = self._predict_after(own, asked.flatten(1, 2).repeat_interleave(2, 1)[:, :, None], outcomes)
        after = found.reshape(*shape, 2)
        covariance = chances * (1 - chances) * (after[..., 1] - after[..., 0]).clip(min=0)
        losing, winning = self._info.reward_fn(BERNOULLI.support)
        found = (covariance * (float(winning) - float(losing)) ** 2).swapaxes(1, 2)  # (B, C, n)
        return found if np.ndim(contexts) == 3 else found[:, 0]

    def decide(self, context: np.ndarray, action: np.ndarray) -> None:
        """Open the next row of every task."""
        self._ledger.decide(context, action)

    def observe(self, feedback: Feedback) -> None:
        """Learn outcomes of open rows; of one task, those that come first in ``feedback`` are appended first.

        If rows have positions, those of a task are read again, in the order of decisions, if one of them comes late.
        """
        task, decision, _ = self._ledger.arrive(feedback, self._model.likelihood)
        if not len(task):
            return
        if self._model.ordered:
            task, decision = self._rewind(task, decision)
        for part in rounds(task):
            self._append(task[part], decision[part])

    def _append(self, task: np.ndarray, decision: np.ndarray) -> None:
        """Append the rows of decisions (n,) of tasks (n,), each task once."""
        ledger = self._ledger
        parts = (ledger.seen[task, decision], ledger.contexts[task, decision], ledger.outcomes[task, decision])
        with torch.no_grad():
            self._cache.append(task, *parts)

    def _rewind(self, task: np.ndarray, decision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drop the ledger's rows of tasks with later ones than these; return the rows to append, by decision.

        Rows that the ledger has forgotten stay: they are the first of each action.
        """
        seen = self._ledger.seen[:, : self._ledger.time] >= 0
        new = np.zeros_like(seen)
        new[task, decision] = True
        latest = np.where(seen & ~new, np.arange(seen.shape[1]), -1).max(axis=1, initial=-1)  # (B,)
        late = np.unique(task[decision < latest[task]])
        actions = np.arange(self._info.n_actions)
        appended = np.where(seen & ~new, self._ledger.seen[:, : self._ledger.time], -1)[late]  # (n, t)
        self._cache.drop(late, (appended[..., None] == actions).sum(1))
        new[late] = seen[late]
        decisions, tasks = np.nonzero(new.T)
        return tasks, decisions

    def complete(
        self,
        context: np.ndarray,
        rows: int | None = None,
        draws: int = 1,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Completion:
        """Return completed tables, drawn given all that was observed; see :class:`gents_gym.types.Belief`."""
        check_integer("draws", draws, 1)
        check_contexts(contexts)
        ledger, columns = self._ledger, self._columns(actions)
        t, end = ledger.time, ledger.end(rows)
        ledger.face(context)
        imagined, _ = imagine(ledger, self._bank, contexts, end - t - 1, draws, self._rngs, t + 1)  # (B, M, T', D)
        seen = ledger.seen[:, :t]
        if actions is not None:
            seen = place_columns(seen, actions, self._info.n_actions)
        known = np.zeros((len(seen), columns.shape[1], imagined.shape[2]), np.bool_)  # (B, n, T')
        if rows is None:
            known[..., :t] = seen[:, None] == np.arange(columns.shape[1])[:, None]
            table = self._generate(columns, imagined, known)
            np.copyto(table[:, :, :t], ledger.outcomes[:, None, :t, None], where=known[:, None, :, :t].swapaxes(2, 3))
            return Completion(imagined, table, None, None, t)
        table, weights = observed_cells(ledger.outcomes[:, :t], seen, end, draws, columns.shape[1])
        table[:, :, t:] = self._generate(columns, imagined[:, :, t:], known[..., t:])
        return Completion(imagined, table, weights, None, t)

    def look_ahead(
        self,
        context: np.ndarray,
        counts: np.ndarray,
        size: int,
        contexts: str | None = None,
        actions: np.ndarray | None = None,
    ) -> Outlook:
        """Return what further observations would be worth; see :class:`gents_gym.types.LooksAhead`."""
        check_integer("size", size, 1)
        check_contexts(contexts)
        ledger = self._ledger
        ledger.end(1)
        ledger.face(context)
        imagined, _ = imagine(ledger, self._bank, contexts, size, 1, self._rngs, 0)  # (B, 1, C, D)
        apart = partial(self._observe_apart, actions)
        current = ledger.contexts[:, ledger.time]
        return find_outlook(self, self._info, current, imagined[:, 0], counts, apart, actions)

    def _observe_apart(
        self, actions: np.ndarray | None, places: np.ndarray, outcomes: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield predictions after imagined outcomes, as :func:`find_outlook` asks; only the action's own change.

        An outcome and all that is asked after it go through in one pass.
        """
        _, n_actions, n = outcomes.shape
        now, model, columns = self.expected(places, actions), self._model, self._columns(actions)  # now: (B, 1+C, A)
        asked = torch.tensor(places)[:, None].expand(-1, n, -1, -1)  # (B, n, 1+C, D)
        for a in range(n_actions):
            own = columns[:, a : a + 1].repeat(n, 1)  # (B, n)
            with torch.no_grad():
                found = self._predict_after(own, asked, torch.tensor(outcomes[:, a], dtype=torch.float32))
            after = np.repeat(now[:, None], n, axis=1)  # (B, n, 1+C, A)
            after[..., a] = model.likelihood.expected_reward(self._info.reward_fn, found)
            yield after

    def _predict_after(self, columns: np.ndarray, contexts: Tensor, outcomes: Tensor) -> np.ndarray:
        """Return parameters in contexts (B, n, k, D) after imagined outcomes (B, n) in the first, (B, n, k, ...)."""
        lengths = self._cache.lengths(columns)[..., None]  # (B, n, 1)
        features = self._features(columns)[:, :, None]
        at = torch.from_numpy(lengths)
        told = self._model.observation_tokens(features, contexts[:, :, :1], outcomes[..., None], at)
        tokens = torch.cat([told, self._queries(columns, contexts)], 2)  # (B, n, 1+k, W)
        return self._run(tokens, self._cache.sequences(columns, 1), True)

    def fork(self, tasks: np.ndarray) -> "TransformerBelief":
        """Return an independent copy of the tasks at ``tasks``, repeats allowed, with random numbers of its own."""
        tasks = check_tasks(tasks, len(self._info))
        other = copy.copy(self)
        other._info, other._rngs = self._info[tasks], [self._rngs[i].spawn(1)[0] for i in tasks]
        other._ledger, other._cache = self._ledger.pick(tasks), self._cache.pick(tasks)
        return other

    def add(self, action_features: np.ndarray) -> None:
        """Add actions with features (B, n, F), which nothing is observed of."""
        size = self._info.action_features.shape[2]
        new = check_array("action_features", action_features, f"(B, n, {size})", (len(self._info), -1, size))
        with torch.no_grad():
            self._cache.add(torch.tensor(new))
        features = np.concatenate([self._info.action_features, new], axis=1)
        self._info = replace(self._info, action_features=features, n_actions=features.shape[1], texts=None)
        self._ledger.widen(features.shape[1])

    def reseed(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw from these generators from now on, one per task."""
        self._rngs = check_rngs(rngs, len(self._info))

    def forget(self, rows: int) -> None:
        """Drop the first rows of every task; what was learned from them stays."""
        self._ledger.forget(rows)

    def state(self) -> dict[str, np.ndarray]:
        """Return all that was observed, and the cache, as plain arrays."""
        memory, owner = self._cache.rows()
        return {**self._ledger.state(), "owner": owner, "memory": memory}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state that :meth:`state` returned in the place of the present one."""
        if state.keys() != (names := {*KEPT, "owner", "memory"}):
            raise InputError(f"state must have {', '.join(sorted(names))}, got {', '.join(sorted(state))}")
        n_tasks, config = len(self._info), self._model.config
        owner = check_array("owner", state["owner"], "(B, C)", (n_tasks, -1), np.int64)
        if owner.min(initial=0) < -1 or owner.max(initial=-1) >= self._info.n_actions:
            raise InputError(f"owner must be -1 or an action below {self._info.n_actions}, got other numbers")
        sizes = (config.layers, 2, config.heads, config.width // config.heads)
        memory = check_array("memory", state["memory"], "(B, C, L, 2, H, d)", (n_tasks, owner.shape[1], *sizes))
        self._ledger.restore(state)
        self._cache.take(memory, owner)

    def _columns(self, actions: np.ndarray | None) -> np.ndarray:
        """Return the actions that are asked for, (B, n)."""
        n_tasks, n_all = len(self._info), self._info.n_actions
        if actions is None:
            return np.tile(np.arange(n_all), (n_tasks, 1))
        return check_columns(actions, n_tasks, n_all)

    def _features(self, columns: np.ndarray, tasks: slice = slice(None)) -> Tensor:
        """Return the features of the actions (B, n) of ``tasks`` in the model's units, (B, n, F)."""
        return self._cache.features[np.arange(len(self._info))[tasks][:, None], columns]

    def _queries(self, columns: np.ndarray, contexts: Tensor) -> Tensor:
        """Return the query tokens of the actions (B, n) in contexts (B, n, k, D), (B, n, k, W)."""
        return self._model.query_tokens(
            self._features(columns)[:, :, None].expand(-1, -1, contexts.shape[2], -1), contexts
        )

    def _run(self, tokens: Tensor, history: Sequences, tells: bool) -> np.ndarray:
        """Return the likelihood's parameters behind the tokens that ask, (B, n, k, W) to (B, n, k or k-1, ...)."""
        outputs = self._cache.run(tokens.flatten(0, 1), history, tells)
        return self._read(outputs.reshape(*tokens.shape[:2], *outputs.shape[1:]))

    def _read(self, outputs: Tensor) -> np.ndarray:
        """Return the parameters that outputs (B, ..., O) stand for, checked, in double precision."""
        found: np.ndarray = self._model.parameters_of(outputs).double().numpy()
        self._model.likelihood.check_parameters("what the model predicts", found)
        return found

    def _generate(self, columns: np.ndarray, contexts: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return generated tables (B, M, T', n).

        Args:
            columns: The actions, (B, n).
            contexts: (B, M, T', D).
            known: Cells that are among the observed rows already, (B, n, T').
        """
        n_tasks, draws, n_rows, _ = contexts.shape
        n = columns.shape[1]
        each = (rng for rng in self._rngs for _ in range(draws))
        noise = stack([self._model.likelihood.noise(rng, (n_rows, n)) for rng in each])
        noise = noise.reshape(n_tasks, draws, n_rows, n)
        table = np.empty_like(noise)
        config = self._model.config
        numbers = config.width * (2 * config.layers + 2 + self._model.n_outcomes)  # of a row: its memory, its tokens
        size = max(1, ROOM // (4 * numbers * draws * n * n_rows))  # tasks at once
        for start in range(0, n_tasks, size):
            part = slice(start, start + size)
            try:
                with torch.no_grad():
                    given = (columns[part], contexts[part], known[part], noise[part])
                    table[part] = self._generate_part(part, *given)
            except TaskError as error:
                error.position += start
                raise
        return table

    def _generate_part(
        self, part: slice, columns: np.ndarray, contexts: np.ndarray, known: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Return the tables of some tasks: every row is predicted given the ones before, for all sequences at once."""
        n_tasks, draws, n_rows, n = noise.shape
        model, each = self._model, np.tile(columns, draws)  # (B, M·n)
        places = np.tile(self._places(columns, known, part), (1, draws, 1)).reshape(-1, n_rows).T  # (T', N), N = B·M·n
        known = np.ascontiguousarray(np.tile(known, (1, draws, 1)).reshape(-1, n_rows).T)  # (T', N)
        z = self._features(each, part).flatten(0, 1).expand(n_rows, -1, -1)  # (T', N, F)
        x = torch.tensor(contexts.transpose(2, 0, 1, 3)).flatten(1, 2).repeat_interleave(n, 1)  # (T', N, D)
        noise = noise.transpose(2, 0, 1, 3).reshape(n_rows, -1)  # (T', N)
        tokens = (model.query_tokens(z, x), *model.open_tokens(z, x, torch.from_numpy(places)))
        table, outputs = self._cache.generate(*tokens, noise, known, self._cache.sequences(each, n_rows, part))
        self._read(outputs.transpose(0, 1).reshape(n_tasks, -1, outputs.shape[2]))  # for its check
        return table.reshape(n_rows, n_tasks, draws, n).transpose(1, 2, 0, 3)

    def _places(self, columns: np.ndarray, known: np.ndarray, tasks: slice) -> np.ndarray:
        """Return the place of each generated row in its action's history, (B, n, T')."""
        places = self._cache.lengths(columns, tasks)[..., None] + np.arange(known.shape[2]) - known.cumsum(2)
        return places.clip(min=0)  # known cells have none
