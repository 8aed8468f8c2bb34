"""The command ``train``, which trains a sequence model; its options are those of the training configuration."""

import json
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import OmitArgPrefixes

from gents_gym import registry
from gents_gym.checks import InputError, check_integer
from gents_gym.cli.console import LineLog, progress_bar
from gents_gym.evaluation.environments import env_distribution, env_setting
from gents_gym.files import check_target
from gents_gym.likelihoods import make_likelihood
from gents_gym.logs.roles import Roles
from gents_gym.training.config import TrainConfig, candidates_label, preset_config, sizes_label


def _with_presets(config: Any) -> Any:
    """Return the configuration's class with None, meaning the preset's value, as default of what presets set."""
    changes = (row for settings in registry.PRESET_CHANGES.values() for row in settings.values())
    decided = {name for row in (*registry.PRESETS.values(), *changes) for name in row} - {"model"}
    kinds: dict[str, Any] = {one.name: one.type for one in fields(config) if one.name in decided}
    options: list[Any] = [(name, kind | None, None) for name, kind in kinds.items()]
    options.append(("model", dict, field(init=False, default_factory=dict)))  # sizes are given with the preset
    unchecked = {"__post_init__": lambda _: None}
    return make_dataclass("TrainOptions", options, bases=(config,), frozen=True, namespace=unchecked)


if TYPE_CHECKING:
    TrainOptions = TrainConfig
else:
    TrainOptions = _with_presets(TrainConfig)


@dataclass(frozen=True)
class Train:
    """Train a sequence model on an environment's historical actions, or on your own logs; write a folder.

    An option that is None takes the preset's value.
    """

    config: OmitArgPrefixes[TrainOptions]
    out: Path
    """Folder for the model; new or empty, or from the same command, which then continues or is already done."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment whose train and validation splits are used, optionally with options."""
    data: Path | None = None
    """A log to use instead of an environment: a CSV or Parquet file with a row for each decision. Its columns are
    named by --action, --outcome, --context and the other roles."""
    roles: OmitArgPrefixes[Roles] = field(default_factory=Roles)
    action_table: Path | None = None
    """With --data: a CSV or Parquet file with a row for each action and its features."""
    split: Literal["action", "time"] = "action"
    """With --data: validate on a fifth of the actions, or on the latest fifth of the rows."""
    likelihood: str | None = None
    """With --data: kind of outcomes, bernoulli, gaussian or categorical(C); none: bernoulli if all are 0 or 1, else
    gaussian."""
    actions: int = 10_000
    """Number of historical actions of the environment to train on."""
    rows: int = 1000
    """Rows of each of these actions."""

    def run(self) -> None:
        """Train and write."""
        from gents_gym.training.folder import train_to_folder

        check_target("out", self.out)
        config = self._config()
        rows, validation, source = self._rows(config)
        trained = False
        with progress_bar() as bars:
            bar = bars.add_task("first fit", total=None)
            log = LineLog(bars.disable)

            def show(progress: Any) -> None:
                nonlocal trained
                trained = True
                total, done = None, progress.batches
                if progress.batch:
                    total, begun = (
                        config.batches(epochs, len(rows), progress.batch)
                        for epochs in (config.epochs * len(config.learning_rates), len(progress.history))
                    )
                    done += begun
                bars.update(bar, total=total, completed=done, description=_say(progress))
                log(say_epoch(progress, config))

            train_to_folder(
                rows, validation, config, self.out, source, on_epoch=show, on_batch=lambda _: bars.advance(bar)
            )
        self._print("written to" if trained else "was already finished in")

    def _config(self) -> TrainConfig:
        """Return the options, filled in from the preset and the environment's setting."""
        setting = env_setting(self.env) if self.data is None else None
        given = {one.name: getattr(self.config, one.name) for one in fields(self.config)}
        given = {name: value for name, value in given.items() if value is not None}
        return preset_config(setting=setting, **given)

    def _rows(self, config: TrainConfig) -> tuple[Any, Any, str]:
        from gents_gym.training.data import draw_rows

        if self.data is not None:
            return self._logged(config, self.data)
        if self.likelihood is not None:
            rule = "likelihood must be given only with data"
            raise InputError(f"{rule}, got {self.likelihood!r}: environments have one")
        if self.roles or self.action_table is not None or self.split != "action":
            raise InputError("columns, action_table and split must be given only with data, got no data")
        distribution, seed = env_distribution(self.env), config.seed
        check_integer("actions", self.actions, 1)
        check_integer("rows", self.rows, 1)
        source = f"{self.env}, seed {seed}: {self.rows} rows of each action of the train split"
        return *draw_rows(distribution, config, self.actions, self.rows), source

    def _logged(self, config: TrainConfig, data: Path) -> tuple[Any, Any, str]:
        """Read the log, print what was used, and return rows, validation rows and their source."""
        from gents_gym.logs.describe import describe
        from gents_gym.logs.record import read_logs
        from gents_gym.training.data import RowSets
        from gents_gym.training.folder import split_actions, split_time

        if (self.actions, self.rows) != (Train.actions, Train.rows):
            raise InputError("actions and rows must be given only without data: a log has its own")
        likelihood = None if self.likelihood is None else make_likelihood(self.likelihood)
        logs = read_logs(data, self.roles, action_table=self.action_table, likelihood=likelihood)
        if not self.roles.action_features:
            raise InputError("action_features must name columns to train on, got none")
        print("\n".join(describe(logs)))
        files = ", ".join(path.name for path in (data, self.action_table) if path is not None)
        by_time = self.split == "time"
        if by_time:
            parts = split_time(logs, 0.2)
        else:
            parts = split_actions(RowSets.from_logs(logs), 0.2, config.seed, config.whole_tasks)
        return *parts, f"logs: {files}{'; the latest rows validate' if by_time else ''}"

    def _print(self, done: str) -> None:
        """Print what was chosen, and the losses."""
        notes = json.loads((self.out / "config.json").read_text())["notes"]
        chosen = notes["chosen"]
        if notes["candidates"]:
            print(f"compared before training: {candidates_label(notes['candidates'])}")
        losses = ", ".join(f"{name} {loss:.4f}" for name, loss in notes["yardsticks"].items())
        print(f"held-out loss {notes['validation_loss']['mean']:.4f} nats per step; {losses}")
        if notes["verdict"]:
            print(notes["verdict"])
        made = f"{notes['config']['preset']} model ({sizes_label(chosen['model'])}; batches of {chosen['batch']})"
        print(f"{made} {done} {self.out}; its README.md has data, seed and losses")


def _say(progress: Any) -> str:
    """Return the text of a progress bar."""
    if progress.history:
        return f"validation {progress.history[-1]['validation']:.4f}, best {progress.best:.4f}"
    return f"first fits: {candidates_label(progress.candidates)}" if progress.candidates else "first epoch"


def say_epoch(progress: Any, config: TrainConfig) -> str:
    """Return a log line: the last epoch and its losses, or what comes before the first."""
    if not progress.history:
        return _say(progress)
    row = progress.history[-1]
    epoch = f"learning rate {config.learning_rates[row['run']]:g}, epoch {row['epoch']} of {config.epochs}"
    return f"{epoch}: training {row['training']:.4f}, {_say(progress)}"
