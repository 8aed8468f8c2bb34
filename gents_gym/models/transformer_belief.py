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
from gents_gym.models.transformer_cache import Cache, View, empty_rows, run
from gents_gym.numerics.rounds import rounds
from gents_gym.types import Completion, Feedback, Outlook, TaskInfo

if TYPE_CHECKING:
    from gents_gym.models.transformer import TransformerModel

ROOM = 1 << 27  # bytes of generated rows' keys and values at once; more tasks go one part after the other


class TransformerBelief:
    """What a transformer believes of B tasks.

    The keys and values of observed rows are computed when outcomes arrive. All that is predicted or generated at a
    decision reads the same ones: M draws of a task's A actions do not copy them. Each generated row costs one pass of
    two tokens, the observation before it and its own query.
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
            tokens = self._queries(columns, places[:, None].expand(-1, columns.shape[1], -1, -1))
            found = self._read(run(self._model, tokens, self._cache.view(columns)))  # (B, n, C, ...)
        means = self._model.likelihood.expected_reward(self._info.reward_fn, found).swapaxes(1, 2)
        return means if np.ndim(contexts) == 3 else means[:, 0]

    def variance(self, contexts: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray | None:
        """Return the variance of those means under the belief, in the same shapes; None unless outcomes are binary.

        Given its chance, two outcomes in one context are independent. So the chance's variance is the covariance of
        the two, p (1 - p) (p₁ - p₀), where p_y is the prediction after an imagined outcome y.
        """
        if self._model.likelihood != BERNOULLI:
            return None
        columns, places = (
            self._columns(actions),
            torch.tensor(self._ledger.check_contexts(contexts)),
        )  # (B, n), (B, C, D)
        shape = (*columns.shape, places.shape[1])
        asked = places[:, None].expand(-1, shape[1], -1, -1)  # (B, n, C, D)
        own = columns.repeat_interleave(2 * shape[2], 1)  # (B, n·C·2)
        outcomes = torch.tensor([0.0, 1.0]).repeat(shape[0], shape[1] * shape[2])  # (B, n·C·2)
        with torch.no_grad():
            chances = self._read(run(self._model, self._queries(columns, asked), self._cache.view(columns)))
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
        whole = np.array_equal(task, np.arange(len(self._info)))  # the usual case, in which nothing is copied
        with torch.no_grad():
            self._cache.append(slice(None) if whole else torch.from_numpy(task), *map(torch.from_numpy, parts))

    def _rewind(self, task: np.ndarray, decision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Clear tasks that have later rows than these; return the rows to append, in the order of decisions."""
        seen = self._ledger.seen[:, : self._ledger.time] >= 0
        new = np.zeros_like(seen)
        new[task, decision] = True
        latest = np.where(seen & ~new, np.arange(seen.shape[1]), -1).max(axis=1, initial=-1)  # (B,)
        late = np.unique(task[decision < latest[task]])
        for i in late:
            self._cache.clear(int(i))
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
        now, model = self.expected(places, actions), self._model  # (B, 1+C, A)
        asked = torch.tensor(places)[:, None].expand(-1, n, -1, -1)  # (B, n, 1+C, D)
        for a in range(n_actions):
            own = self._columns(actions)[:, a : a + 1].expand(-1, n)  # (B, n)
            with torch.no_grad():
                found = self._predict_after(own, asked, torch.tensor(outcomes[:, a], dtype=torch.float32))
            after = np.repeat(now[:, None], n, axis=1)  # (B, n, 1+C, A)
            after[..., a] = model.likelihood.expected_reward(self._info.reward_fn, found)
            yield after

    def _predict_after(self, columns: Tensor, contexts: Tensor, outcomes: Tensor) -> np.ndarray:
        """Return parameters in contexts (B, n, k, D) after imagined outcomes (B, n) in the first, (B, n, k, ...)."""
        lengths = self._cache.lengths(columns)[..., None]  # (B, n, 1)
        self._model.check_length(int(lengths.max()) + 1)
        features = _each(self._cache.features, columns, 1)
        told = self._model.observation_tokens(features, contexts[:, :, :1], outcomes[..., None], lengths)
        tokens = torch.cat([told, self._queries(columns, contexts)], 2)  # (B, n, 1+k, W)
        own = empty_rows(self._model, *columns.shape, 1)
        return self._read(run(self._model, tokens, self._cache.view(columns), own))

    def fork(self, tasks: np.ndarray) -> "TransformerBelief":
        """Return an independent copy of the tasks at ``tasks``, repeats allowed, with random numbers of its own."""
        tasks = check_tasks(tasks, len(self._info))
        other = copy.copy(self)
        other._info, other._rngs = self._info[tasks], [self._rngs[i].spawn(1)[0] for i in tasks]
        other._ledger, other._cache = self._ledger.pick(tasks), self._cache.pick(torch.from_numpy(tasks))
        return other

    def add(self, action_features: np.ndarray) -> None:
        """Add actions with features (B, n, F), which nothing is observed of."""
        new = check_array("action_features", action_features, "(B, n, F)", (len(self._info), -1, -1))
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
        cache, length = self._cache, self._cache.length
        kept = {"owner": cache.owner[:, :length].numpy().copy(), "memory": cache.plain_rows().numpy()}
        return {**self._ledger.state(), **kept}

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
        self._cache.take(torch.tensor(memory), torch.tensor(owner))

    def _columns(self, actions: np.ndarray | None) -> Tensor:
        """Return the actions that are asked for, (B, n)."""
        n_tasks, n_all = len(self._info), self._info.n_actions
        if actions is None:
            return torch.arange(n_all).expand(n_tasks, -1)
        return torch.tensor(check_columns(actions, n_tasks, n_all), dtype=torch.int64)

    def _queries(self, columns: Tensor, contexts: Tensor) -> Tensor:
        """Return the query tokens of the actions (B, n) in contexts (B, n, k, D), (B, n, k, W)."""
        return self._model.query_tokens(_each(self._cache.features, columns, contexts.shape[2]), contexts)

    def _read(self, tokens: Tensor) -> np.ndarray:
        """Return the likelihood's parameters behind tokens (B, n, k, W), checked, in double precision."""
        found: np.ndarray = self._model.read(tokens).double().numpy()
        self._model.likelihood.check_parameters("what the model predicts", found)
        return found

    def _generate(self, columns: Tensor, contexts: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return generated tables (B, M, T', n).

        Args:
            columns: The actions, (B, n).
            contexts: (B, M, T', D).
            known: Cells that are among the observed rows already, (B, n, T').
        """
        n_tasks, draws, n_rows, _ = contexts.shape
        n, config = columns.shape[1], self._model.config
        each = (rng for rng in self._rngs for _ in range(draws))
        noise = stack([self._model.likelihood.noise(rng, (n_rows, n)) for rng in each])
        noise = noise.reshape(n_tasks, draws, n_rows, n)
        table = np.empty_like(noise)
        size = max(1, ROOM // (8 * config.layers * config.width * draws * n * n_rows))  # tasks at once
        for start in range(0, n_tasks, size):
            part = slice(start, start + size)
            try:
                with torch.no_grad():
                    table[part] = self._generate_part(part, columns, contexts, torch.from_numpy(known), noise)
            except TaskError as error:
                error.position += start
                raise
        return table

    def _generate_part(
        self, part: slice, columns: Tensor, contexts: np.ndarray, known: Tensor, noise: np.ndarray
    ) -> np.ndarray:
        """Return the tables of some tasks: every row is predicted given the ones before, for all sequences at once."""
        places = self._places(columns, known)[part]
        columns, known, noise, given = columns[part], known[part], noise[part], torch.tensor(contexts[part])
        n_tasks, draws, n_rows, n = noise.shape
        table, model = np.empty_like(noise), self._model
        view = _repeat(self._cache.view(columns, part), draws)
        own = empty_rows(model, n_tasks, draws * n, n_rows)
        own.hidden[:, 0, :, 0].masked_fill_(known.repeat(1, draws, 1), -torch.inf)
        features = _each(self._cache.features[part], columns.repeat(1, draws), 1)  # (B, M·n, 1, F)
        places = places.repeat(1, draws, 1)  # (B, M·n, T')
        told: list[Tensor] = []  # the token of the row before
        for t in range(n_rows):
            context = given[:, :, None, t].expand(-1, -1, n, -1).flatten(1, 2)[:, :, None]  # (B, M·n, 1, D)
            tokens = torch.cat([*told, model.query_tokens(features, context)], 2)  # (B, M·n, 1 or 2, W)
            found = self._read(run(model, tokens, view, own.until(t)))[:, :, -1]  # (B, M·n, ...)
            shape = (n_tasks, draws, n, *found.shape[2:])
            table[:, :, t] = model.likelihood.sample(found.reshape(shape), noise[:, :, t])
            outcome = torch.from_numpy(table[:, :, t].reshape(n_tasks, -1, 1))
            told = [model.observation_tokens(features, context, outcome, places[:, :, t, None])]
        return table

    def _places(self, columns: Tensor, known: Tensor) -> Tensor:
        """Return the place of each generated row in its action's history, (B, n, T'), or raise if one is too long."""
        places = self._cache.lengths(columns)[..., None] + torch.arange(known.shape[2]) - known.cumsum(2)
        self._model.check_length(int(places.max()) + 1)
        return places.clamp_(min=0)  # known cells have none


def _each(features: Tensor, columns: Tensor, k: int) -> Tensor:
    """Return the features of the actions (B, n), once for each of k tokens, (B, A, F) to (B, n, k, F)."""
    picked = features.gather(1, columns[..., None].expand(-1, -1, features.shape[2]))
    return picked[:, :, None].expand(-1, -1, k, -1)


def _repeat(view: View, draws: int) -> View:
    """Return the view of M copies of each sequence, those of a draw next to each other; shared rows stay one."""
    return View(view.first.repeat(1, 1, 1, 1, draws, 1), view.shared, view.hidden.repeat(1, 1, draws, 1, 1))
