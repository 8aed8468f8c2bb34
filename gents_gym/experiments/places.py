"""Lists the settings with their models, a user's corpus and models, and the scales of experiments."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_choice
from gents_gym.evaluation.environments import env_distribution
from gents_gym.evaluation.grid import first_info
from gents_gym.experiments.rungs import RUNGS, WITHOUT_FEATURES, climb
from gents_gym.models.load import begin_belief, bundled_models, load_model, model_folders, read_config
from gents_gym.models.sequence import CONFIG
from gents_gym.specs import BARE_WORD

FITTING = ("ts-gen", "gen-ucb")  # agents that fit a policy class, which the experiments name
FEWEST = 100  # fewest training headlines of a corpus to train models on
FEATURES = "features(base=logistic)"  # policies on the model's own φ̂(X)
HORIZON = 500  # T of the settings by default
LAYERS = 3  # hidden layers of the paper's head


def on(model: str, agent: str, **options: object) -> str:
    """Return the spec of an agent on a model; policies are logistic if ``options`` name no others."""
    policy = {"policy": "logistic"} if agent in FITTING else {}
    given = ", ".join(f"{name}={value}" for name, value in {"model": _quoted(model), **policy, **options}.items())
    return f"{agent}({given})"


def _quoted(text: str) -> str:
    """Return a text as specs need it: unchanged if it is a word or a spec, otherwise in quotes."""
    return text if BARE_WORD.fullmatch(text) or text.endswith(")") else repr(text)


@dataclass(frozen=True)
class Scale:
    """How much is played, and how much is trained if models are missing."""

    tasks: int
    horizon: int
    actions: int  # actions whose losses are measured
    timed: int = 4  # tasks whose decisions are timed one by one
    training: int = 2000  # most actions of the train split that models are trained on
    rows: int = 300  # of each
    epochs: int = 4  # at most
    validation: int = 500  # actions, at most


SCALES = {
    "small": Scale(tasks=20, horizon=200, actions=300),
    "medium": Scale(100, 500, 2000, timed=10, training=10_000, rows=1000, epochs=20, validation=2000),
    "paper": Scale(500, 500, 5000, timed=20, training=20_000, rows=1000, epochs=1000, validation=10_000),
}


@dataclass(frozen=True)
class Setting:
    """Where experiments are played: an environment and its models."""

    name: str
    env: str
    oracle: str  # the policy class of regret and of TS-Gen, as in the paper
    beside: tuple[str, ...]  # other policy classes that are played as well
    exact: str  # TS-Gen with p* itself
    sizes: Mapping[str, tuple[int, ...]]  # by preset: numbers of training actions of smaller models
    whole: int = 10_000  # training actions of a full model
    where: str = ""  # a description of the headlines, shown next to every verdict
    given: tuple[str, ...] = ()  # the user's models, which replace all others
    corpus: str | None = None  # the user's corpus; None: the bundled one
    folder: Path | None = None  # folder of models of the user's corpus; None: models are bundled
    made: Path = Path()  # folder of models that are not bundled

    def spec(self, horizon: int) -> str:
        """Return the environment with its options."""
        corpus = {} if self.corpus is None else {"corpus": repr(self.corpus)}
        options = {**corpus, **({} if horizon == HORIZON else {"horizon": horizon})}
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"{self.env}({given})" if given else self.env

    def model(self, kind: str) -> str:
        """Return the setting's model of a kind, PRESET, PRESET-ACTIONS or PRESET-layersN, as an id or a folder."""
        name = f"{self.name}-{kind}"
        return name if self.folder is None else str(self.folder / name)

    @property
    def ladder(self) -> tuple[str, ...]:
        """The user's models, or those from ``literal`` to ``filter``, one change at a time, as ids or folders."""
        if self.given:
            return self.given
        rungs = RUNGS if self.beside else WITHOUT_FEATURES
        kinds = ("literal", *(f"literal-{rung}" for rung in rungs), "paper", "filter")
        names, bundled = [f"{self.name}-{kind}" for kind in kinds], {} if self.folder else bundled_models()
        return tuple(name if name in bundled else str(self.made / name) for name in names)

    @property
    def policies(self) -> tuple[str, ...]:
        """The policy classes that TS-Gen is played with, the paper's first."""
        return (self.oracle, *self.beside)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that every experiment is played on; the last one is our best."""
        return self.given or tuple(self.model(preset) for preset in self.sizes)

    @property
    def tested(self) -> tuple[str, ...]:
        """The models that the paper's statements are tested on: the printed one before those of every experiment."""
        return self.given or (self.model("literal"), *self.models)

    @property
    def series(self) -> dict[str, dict[int, str]]:
        """By preset, models by training actions."""
        if not self.given:
            return {
                preset: {n: self.model(f"{preset}-{n}") for n in sizes if n < self.whole}
                | {self.whole: self.model(preset)}
                for preset, sizes in self.sizes.items()
            }
        found: dict[str, dict[int, str]] = {}
        for model in self.given:
            notes = _read(model).get("notes") or {}
            try:
                size, preset = notes["actions"]["training"], notes["config"]["preset"]
            except (KeyError, TypeError):
                raise InputError(f"models must record how many actions they were trained on, got {model!r}") from None
            found.setdefault(preset, {})[size] = model
        return {preset: dict(sorted(sizes.items())) for preset, sizes in found.items()}

    @property
    def heads(self) -> dict[int, str]:
        """Models by the hidden layers of their head."""
        if not self.given:
            return {**{n: self.model(f"paper-layers{n}") for n in range(LAYERS)}, LAYERS: self.model("paper")}
        configs = {model: _read(model)["config"] for model in self.given}
        if missing := [model for model, config in configs.items() if "hidden_layers" not in config]:
            raise InputError(f"models must have heads with hidden layers for this experiment, got {missing[0]!r}")
        return dict(sorted((int(config["hidden_layers"]), model) for model, config in configs.items()))


def _read(model: str) -> dict[str, Any]:
    return read_config(model_folders(model)[0] / CONFIG)


def training_label(model: str) -> str:
    """Return how much a model was trained, in words; "" for a model that was not, or does not say."""
    notes = {} if model == "exact" else _read(model).get("notes") or {}
    try:
        chosen, actions, config = notes["chosen"], notes["actions"]["training"], notes["config"]
        steps = chosen.get("gradient_steps") or config["epochs"] * -(-actions // config["batch"])
        return f"{actions:,} actions, {steps:,} steps, rate {chosen['learning_rate']:g}"
    except (KeyError, TypeError):
        return ""


SETTINGS = {
    "synthetic": Setting(
        name="synthetic",
        env="gents_gym/Synthetic-v0",
        oracle="logistic",
        beside=(),
        exact=on("exact", "ts-gen"),
        sizes={"paper": (100, 1000), "filter": (10, 100, 1000)},
    ),
    "news": Setting(
        name="news",
        env="gents_gym/News-v0",
        oracle="mlp",
        beside=(FEATURES,),
        exact="exact-twin(policy=logistic)",
        sizes={"paper": (1000,), "filter": (100, 1000)},
        where="synthetic headlines",
    ),
}


def find_place(setting: str, size: Scale, corpus: Path | None, models: tuple[str, ...], folder: Path) -> Setting:
    """Return the setting, on the user's corpus and models if there are any, or raise if they do not fit.

    Args:
        setting: One of ``SETTINGS``.
        size: How much is trained.
        corpus: A prepared corpus of the news setting; None: the bundled one.
        models: The user's models; (): the bundled ones, or those of the corpus.
        folder: The folder for models of a corpus.
    """
    place = replace(SETTINGS[check_choice("setting", setting, SETTINGS)], made=folder)
    if corpus is not None:
        if setting != "news":
            raise InputError(f"corpus must be given with the setting news, got {setting!r}")
        place = replace(place, corpus=str(corpus), where=f"headlines of {corpus.name}")
        distribution: Any = env_distribution(place.spec(HORIZON))
        n_headlines = len(distribution.headlines.splits["train"])
        if not models:
            place = replace(place, folder=folder, whole=min(n_headlines, size.training))
            if n_headlines < FEWEST:
                rule = f"corpus must have at least {FEWEST} training headlines to train models on"
                raise InputError(f"{rule}, got {n_headlines}: prepare more of them, or name models")
    return _given_models(place, models) if models else place


def _given_models(place: Setting, models: tuple[str, ...]) -> Setting:
    """Return the setting with the user's models, or raise unless each fits its tasks."""
    info = first_info(place.spec(HORIZON), "test", 0)
    if len({*models}) < len(models):
        raise InputError(f"models must differ from each other, got {' '.join(models)}")
    beside = place.beside
    for name in models:
        try:
            model, _ = begin_belief(load_model(name), info, [np.random.default_rng(0)])
        except InputError as error:
            raise InputError(f"models must be of the setting that is played, got {name!r}: {error}") from error
        if model.context_features(np.zeros((1, info.context_dim), np.float32)) is None:
            beside = ()
    whole = max((_training_actions(name) for name in models), default=0) or place.whole
    return replace(place, given=models, beside=beside, whole=whole)


def _training_actions(model: str) -> int:
    """Return how many actions a model was trained on; 0 if it does not say."""
    try:
        return int(_read(model)["notes"]["actions"]["training"])
    except (InputError, KeyError, TypeError):
        return 0


@dataclass(frozen=True)
class Recipe:
    """How a model that the experiments know by name is trained."""

    preset: str
    sizes: Mapping[str, int]  # sizes of the model that differ from the preset
    actions: int | None  # number of actions to train on; None: all
    training: Mapping[str, Any]  # options that differ from the preset


KINDS = r"-layers(?P<layers>\d+)|-(?P<actions>\d+)|-(?P<rung>[a-z]+)"
NAME = re.compile(rf"(synthetic|news)-(?P<preset>[a-z]+)({KINDS})?")


def find_recipe(model: str) -> Recipe:
    """Return how a model is trained, given its name or its folder's: SETTING-PRESET, or SETTING-PRESET-VARIANT.

    A variant is a number of actions, "layers" with a number, or a rung.
    """
    match = NAME.fullmatch(Path(model).name)
    assert match is not None
    layers, actions = match["layers"], match["actions"]
    sizes, training = climb(match["rung"]) if match["rung"] else ({}, {})
    if layers:
        sizes = {"hidden_layers": int(layers)}
    return Recipe(match["preset"], sizes, int(actions) if actions else None, training)
