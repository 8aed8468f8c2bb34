"""The commands about sequence models: train, losses."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from gents_gym.checks import InputError, check_integer
from gents_gym.cli.console import progress_bar
from gents_gym.construct import parse_spec
from gents_gym.evaluation.environments import env_distribution, env_setting
from gents_gym.files import write_whole
from gents_gym.likelihoods import make_likelihood


@dataclass(frozen=True)
class Train:
    """Train a sequence model on an environment's historical actions, or on logs of your own; write a folder."""

    out: Path
    """Folder for the model; new or empty, or that of an unfinished run of the same command, which goes on."""
    preset: str = "filter"
    """filter, paper, or package.module:Class, a SequenceModel of yours; sizes behind it: "paper(hidden_layers=1)"."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment whose train and validation splits are learned from, with options behind it."""
    data: Path | None = None
    """Logged rows, a Parquet or CSV file: action, outcome, the context in all other columns; and task, where actions
    differ by task. It takes the environment's place."""
    action_features: Path | None = None
    """With --data: a file of the same kind with the features of every action."""
    likelihood: str | None = None
    """With --data: what an outcome is, bernoulli, gaussian or categorical(C); none: bernoulli if all are 0 or 1, else
    gaussian."""
    actions: int = 10_000
    """Historical actions of the environment to train on."""
    rows: int = 1000
    """Rows of each."""
    seed: int = 0
    """Seed of the rows and of the training."""
    epochs: int | None = None
    """Epochs; none: the preset's. So with the following."""
    batch: int | None = None
    """Actions in a batch."""
    horizon: int | None = None
    """Rows of a training sequence, T."""
    learning_rates: tuple[float, ...] | None = None
    """Learning rates to try; the lowest validation loss wins."""
    steps: int | None = None
    """Entries of each sequence whose loss counts, drawn anew for every batch."""
    validation_actions: int | None = None
    """Actions that choose epoch and learning rate, at the most."""
    replacement: bool | None = None
    """Bootstrap sequences with replacement, as the paper does, instead of permuting an action's rows."""
    blind: bool = False
    """Hide the action features from the model: what they are worth shows in the difference."""

    def run(self) -> None:
        """Train and write."""
        from gents_gym.training.folder import train_to_folder
        from gents_gym.training.loop import preset_config

        preset, sizes = parse_spec(self.preset)
        own = {"out", "preset", "env", "data", "action_features", "likelihood", "actions", "rows"}
        named = [entry.name for entry in fields(self) if entry.name not in own]
        given = {name: value for name in named if (value := getattr(self, name)) is not None}
        setting = env_setting(self.env) if self.data is None else None
        config = preset_config(preset, setting, model=sizes, **given)
        rows, validation, source = self._rows(config.horizon, config.validation_actions)
        n_batches = -(-len(rows) // config.batch)
        with progress_bar() as bars:
            bar = bars.add_task("batches", total=n_batches * config.epochs * len(config.learning_rates))

            def show(progress: Any) -> None:
                bars.update(bar, completed=n_batches * len(progress.history))
                last = progress.history[-1]["validation"]
                bars.update(bar, description=f"validation {last:.4f}, best {progress.best:.4f}")

            model = train_to_folder(
                rows, validation, config, self.out, source, on_epoch=show, on_batch=lambda _: bars.advance(bar)
            )
        print(f"{model.kind} model written to {self.out}; its README.md tells data, seed and losses")

    def _rows(self, horizon: int, n_validation: int) -> tuple[Any, Any, str]:
        from gents_gym.training.data import RowSets, read_logs
        from gents_gym.training.folder import split_actions

        if (self.data is None) != (self.action_features is None):
            missing = "action_features" if self.action_features is None else "data"
            raise InputError(f"data and action_features must be given together, got no {missing}")
        if self.data is None and self.likelihood is not None:
            raise InputError(
                f"likelihood must be given with data alone, got {self.likelihood!r}: environments have one"
            )
        if self.data is not None and self.action_features is not None:
            likelihood = None if self.likelihood is None else make_likelihood(self.likelihood)
            logs = read_logs(self.data, self.action_features, likelihood)
            rows, validation = split_actions(logs, 0.2, self.seed)
            return rows, validation, f"logs: {self.data.name}, {self.action_features.name}"
        distribution = env_distribution(self.env)
        check_integer("actions", self.actions, 1)
        check_integer("rows", self.rows, 1)
        seen = distribution.sample_actions(self.seed, range(self.actions), self.rows, "train")
        held_out = distribution.sample_actions(self.seed, range(n_validation), horizon, "validation")
        source = f"{self.env}, seed {self.seed}: {self.rows} rows of each action of the train split"
        return RowSets.from_rows(seen), RowSets.from_rows(held_out), source


@dataclass(frozen=True)
class MeasureLosses:
    """Print models' held-out losses on the same rows of the test split, beside the exact p*."""

    models: tuple[str, ...] = ("synthetic-paper", "synthetic-filter", "exact")
    """Bundled models, folders, or package.module:Class(folder=...); "exact" is p* itself, of the synthetic or the news
    setting."""
    kind: str | None = None
    """Class of the folders among the models, package.module:Class, if its kind is not registered."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment whose test split is predicted."""
    actions: int = 2000
    """Single actions to predict."""
    seed: int = 0
    """Seed of the rows."""
    blind: str | None = None
    """One of the models, which sees no action features: what share of its distance to "exact" do the others close?"""
    out: Path | None = None
    """A new PNG file for the losses by step."""

    def run(self) -> None:
        """Measure and print."""
        from gents_gym.models.load import bundled_models, load_model
        from gents_gym.training.losses import draw_losses_by_step, exact_model, measure

        if self.out is not None and (self.out.exists() or not self.out.parent.is_dir()):
            raise InputError(f"out must be a new file in a folder that exists, got '{self.out}'")
        if not self.models:
            raise InputError("models must name at least one model, got none")
        if self.blind is not None and (self.blind == "exact" or not {self.blind, "exact"} <= {*self.models}):
            told = f"{self.blind!r} of {', '.join(self.models)}"
            raise InputError(f"blind must be one of the models beside 'exact', which must be one too, got {told}")
        distribution = env_distribution(self.env)
        bundled = bundled_models()

        def load(name: str) -> Any:
            is_folder = name not in bundled and ":" not in name
            return load_model(name, self.kind if is_folder else None)

        models = {name: exact_model(distribution) if name == "exact" else load(name) for name in self.models}
        horizon = distribution.sample(0, [0]).horizon
        check_integer("actions", self.actions, 2)
        rows = distribution.sample_actions(self.seed, range(self.actions), horizon, "test")
        with Console(stderr=True).status("measuring"):
            found = measure(models, rows, self.seed)
        print(f"{self.env}, {self.actions} actions of the test split, seed {self.seed}: nats per step, mean ± s.e.")
        shown = [prefix for prefix in (1, 10, 50) if prefix in found.prefixes and prefix < horizon] + [horizon]
        print(f"{'model':<28}" + "".join(f"{f'first {prefix}':>20}" for prefix in shown))
        for name in models:
            cells = ("{:.5f} ± {:.5f}".format(*found.mean(name, prefix)) for prefix in shown)
            print(f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells))
        others = [name for name in models if name != "exact" and "exact" in models]
        if others:
            print("above exact, paired by action:")
        for name in others:
            cells = ("{:.5f} ± {:.5f}".format(*found.gap(name, "exact", prefix)) for prefix in shown)
            print(f"{name:<28}" + "".join(f"{cell:>20}" for cell in cells))
        for name in others:
            gap, error = found.gap(name, "exact", horizon)
            whole = f"{gap * horizon:.3f} nats per sequence"
            print(f"{name} is above exact by {gap:.6f} ± {error:.6f} nats per step, {whole}")
        for name in [name for name in others if self.blind and name != self.blind]:
            shares = (found.closed(name, str(self.blind), "exact", prefix) for prefix in shown)
            told = ", ".join(
                f"{share:.3f} ± {1.96 * error:.3f} over the first {prefix}"
                for prefix, (share, error) in zip(shown, shares, strict=True)
            )
            print(f"of the distance from {self.blind} to exact, {name} closes (± 95 %): {told}")
        if self.out is not None:
            write_whole(self.out, draw_losses_by_step(found, "exact" if "exact" in models else None))
