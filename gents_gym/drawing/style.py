"""Chooses the style of agents in every figure and on the report's page: color shows the agent, the dash the model."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import PurePath
from typing import Any

from gents_gym.checks import InputError
from gents_gym.specs import parse_spec

SOFTWARE = "gents_gym"  # metadata that marks a figure as ours
INK = "#000000"  # of privileged agents
# Okabe and Ito's colors, which are safe for color-blind readers.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MORE = ("#6A3D9A", "#8A4B2A", "#767676")  # colors of further models in one picture
AGENTS = {  # the same in every picture
    "ts-gen": "#0072B2",
    "greedy": "#D55E00",
    "linucb": "#009E73",
    "lints": "#CC79A7",
    "epsilon-greedy": "#E69F00",
    "gen-ucb": "#56B4E9",
    "neural-linear-ts": "#6A3D9A",
    "softmax": "#8A4B2A",
    "random": "#767676",
    "bayes-ucb": "#44AA99",
    "gen-kg": "#882255",
    "ids": "#332288",
    "squarecb": "#AA4499",
    "auto": "#117733",
}
# For other ids, by a hash of the name.
OTHERS = ("#A6961C", "#C2608A", "#5A7FB8", "#B3446C", "#9A6FB0", "#C08A5A", "#7A6A58")
DASHES: tuple[tuple[float, ...], ...] = (  # lengths on and off, in line widths; () is solid
    (),
    (5, 1.6),
    (1.2, 1.4),
    (6, 1.5, 1.2, 1.5),
    (2.6, 1.3),
    (8, 1.5, 1.2, 1.5, 1.2, 1.5),
)
MODELS = {"": 0, "filter": 0, "paper": 1, "exact": 2}  # dashes, the same in every picture
DARK = 130  # least brightness of lines on a dark page
SETTINGS = ("synthetic-", "news-")  # prefixes of the names of bundled models


@dataclass(frozen=True)
class Look:
    """The style of an agent's lines, in figures and on the page."""

    color: str
    dash: tuple[float, ...]  # lengths on and off, in line widths; () is solid

    @property
    def linestyle(self) -> str | tuple[float, tuple[float, ...]]:
        """The dash in Matplotlib's format."""
        return (0, self.dash) if self.dash else "-"

    @property
    def style(self) -> dict[str, Any]:
        """Color and dash as keyword arguments for Matplotlib."""
        return {"color": self.color, "linestyle": self.linestyle}

    @property
    def lifted(self) -> str:
        """The color on a dark page; dark colors are made lighter."""
        color = self.color if self.color != INK else "#E8EAED"
        while _brightness(color) < DARK:
            color = mix(color, "#FFFFFF", 0.1)
        return color


def looks(privileged: Mapping[str, bool]) -> dict[str, Look]:
    """Return a style for each agent, all different.

    In every picture, the color depends on the agent's id and the dash on its model. Agents that differ only in other
    options have shades of one color. Privileged agents are black and dashed. An id that is not ours keeps its color
    unless another id in the picture has it too.

    Args:
        privileged: By spec, whether the agent is privileged.
    """
    parts = {agent: _parts(agent) for agent in privileged}
    colors = _colors(name for name, _, _ in parts.values())
    dashes = _dashes(model for _, model, _ in parts.values())
    found: dict[str, Look] = {}
    # The plainest spec keeps the plain color.
    for agent in sorted(parts, key=lambda agent: (len(parts[agent][2]), agent)):
        name, model, _ = parts[agent]
        color, dash = (INK, max(1, dashes[model])) if privileged[agent] else (colors[name], dashes[model])
        shades = [color] if privileged[agent] else [color, mix(color, "#000000", 0.45), mix(color, "#FFFFFF", 0.4)]
        known = [i for i in _from(dash, len(DASHES)) if i or not privileged[agent]]
        every = [Look(shade, DASHES[i]) for i, shade in product(known, shades)]
        found[agent] = next((look for look in every if look not in found.values()), every[0])
    return {agent: found[agent] for agent in privileged}


def model_looks(models: Iterable[str]) -> dict[str, Look]:
    """Return a style for each model, for pictures in which only models differ: both color and dash show the model."""
    names = list(dict.fromkeys(models))
    dashes = _dashes(_model(name) for name in names)
    plain = [name for name in names if name != "exact"]
    colors = dict(zip(plain, cycle((*PALETTE, *MORE))))
    return {name: Look(colors.get(name, INK), DASHES[dashes[_model(name)]]) for name in names}


def mix(color: str, other: str, share: float) -> str:
    """Return a color mixed with a share of another one; colors are "#RRGGBB"."""
    pairs = [(int(color[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round((1 - share) * one + share * two):02X}" for one, two in pairs)


def _brightness(color: str) -> float:
    """Return the perceived brightness of a color, from 0 to 255."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _parts(agent: str) -> tuple[str, str, dict[str, object]]:
    """Return an agent's id, its model without the setting, and its other options."""
    try:
        name, options = parse_spec(agent)
    except InputError:  # a name that is not a spec
        return agent, "", {}
    return name, _model(str(options.pop("model", ""))), options


def _model(model: str) -> str:
    name = PurePath(model).name
    return next((name.removeprefix(setting) for setting in SETTINGS if name.startswith(setting)), name)


def _colors(names: Iterable[str]) -> dict[str, str]:
    unique = sorted({*names})
    found = {name: AGENTS[name] for name in unique if name in AGENTS}
    choices = (*OTHERS, *AGENTS.values())
    for name in (name for name in unique if name not in AGENTS):
        turn = [choices[i] for i in (*_from(_hash(name) % len(OTHERS), len(OTHERS)), *range(len(OTHERS), len(choices)))]
        found[name] = next((color for color in turn if color not in found.values()), turn[0])
    return found


def _dashes(models: Iterable[str]) -> dict[str, int]:
    """Return the index of each model's dash."""
    unique = sorted({*models})
    found = {model: MODELS[model] for model in unique if model in MODELS}
    for model in (model for model in unique if model not in MODELS):
        turn = list(_from(_hash(model) % len(DASHES), len(DASHES)))
        found[model] = next((i for i in turn if i not in found.values()), turn[0])
    return found


def _from(first: int, size: int) -> Iterable[int]:
    return [(first + i) % size for i in range(size)]


def _hash(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0]
