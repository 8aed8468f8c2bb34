"""Whatever is given: a result or one clear line, never another exception, an endless run or a wrong thing accepted.

``FUZZ=50 pytest tests/test_fuzz.py`` tries fifty times as many cases as the suite does.
"""

import contextlib
import io
import json
import math
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from gents_gym import (
    BanditVectorEnv,
    EvaluationConfig,
    InputError,
    RowSets,
    Tasks,
    cli,
    evaluate,
    load_model,
    load_results,
    make_agent,
    make_policy,
    make_tasks,
    preset_config,
    rollout,
    train,
)
from gents_gym.checks import check_actions, check_array, check_choice, check_flag, check_integer, check_number
from gents_gym.construct import get_policy
from gents_gym.evaluation import store
from gents_gym.evaluation.environments import find_distribution, make_envs
from gents_gym.evaluation.grid import plan
from gents_gym.files import check_target, new_file, new_folder, write_whole
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.report.comparison import compare
from gents_gym.report.report import write_report
from gents_gym.seals import BLANK, read_sealed_tensors, seal, write_described
from gents_gym.specs import check_registered, parse_spec
from gents_gym.tasks.headlines.corpus import BUNDLED, load_corpus
from gents_gym.tasks.headlines.read import read_headlines
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training.config import TrainConfig

MORE = int(os.environ.get("FUZZ", "1"))
SECONDS = 30  # that no case takes
SMALL = "gents_gym/Synthetic-v0(horizon=2)"
MODEL = load_model("synthetic-filter")
TINY = preset_config("filter", epochs=1, horizon=5, choose=False)
WORDS = (
    "", " ", "a\0b", "x" * 300, "é\u2028", "-1", "1e999", "nan", "None", "..", "/", "/dev/null/x", "logistic(", "()",
    "os:system", "os:system(command=false)", "builtins:print", "gents_gym:", ":", "a:b:c", "linucb", "logistic",
    "lints(prior=fitted)", "lints(noise=nan)", "linucb(alpha=1e400)", "linucb(alpha='x')", "ts-gen(model=os:system)",
    "callable(function=os:system)", "per-task(agent=linucb)", "constrained(base=os:system)", "estimator(estimator=3)",
    "gents_gym.files:write_whole", "gents_gym.evaluation.grid:Cell", "synthetic", "news", SMALL, "CartPole-v1",
    "this:Env-v0", "test", "best",
)  # fmt: skip
ODD = (
    None, True, False, 0, 1, -1, 1.5, math.nan, math.inf, 10**30, -(10**30), b"x", (), [], {}, {"a": 1}, (1,), [None],
    ..., len, object(), object, np.zeros(0), np.zeros((2, 3)), np.ones(2) + 1j, np.array("x"), np.array([{}]),
    np.float32(2), np.int64(1), {1, 2}, range(3), 10**14, range(10**14), range(10**30), [0.5, 1.5],
)  # fmt: skip
odd = st.sampled_from(ODD) | st.sampled_from(WORDS) | st.text(max_size=12) | st.integers(-3, 3)
few = settings(
    max_examples=30 * MORE, deadline=None, derandomize=MORE == 1, database=None, suppress_health_check=[*HealthCheck]
)
many = settings(few, max_examples=250 * MORE)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Stand in an empty folder: what is written by mistake is seen there."""
    monkeypatch.chdir(tmp_path)


@contextlib.contextmanager
def answer():
    """Let a case end, in time, with an InputError of one line at the worst."""

    def stop(*_):
        raise TimeoutError(f"it took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    except InputError as error:
        if not str(error).strip():
            raise AssertionError("an error says nothing") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


FUNCTIONS = {
    "make_agent": make_agent,
    "make_policy": make_policy,
    "make_tasks": make_tasks,
    "parse_spec": parse_spec,
    "get_policy": lambda value: get_policy("policy", value),
    "check_registered": lambda value: check_registered("oracle", value, ["logistic"]),
    "find_distribution": find_distribution,
    "make_envs": lambda value: make_envs(value, 1),
    "load_results": load_results,
    "write_report": lambda value: write_report("nowhere", value),
    "write_whole": lambda value: write_whole(value, b"x"),
    "check_target": lambda value: check_target("out", value),
    "new_file": lambda value: new_file("out", value),
    "sample": lambda value: Synthetic(horizon=2).sample(0, value),
    "sample_actions": lambda value: Synthetic().sample_actions(0, value, 2),
    "n_rows": lambda value: Synthetic().sample_actions(0, [0], value),
    "horizon": lambda value: Synthetic(horizon=value).sample(0, [0]),
    "n_actions": lambda value: Synthetic(n_actions=value, horizon=2).sample(0, [0]),
    "num_envs": lambda value: BanditVectorEnv("synthetic", value, horizon=2),
    "load_model": load_model,
    "save": lambda value: Synthetic(horizon=2).sample(0, [0]).save(value),
    "save_pretrained": lambda value: MODEL.save_pretrained(value) if value != "/" else None,
    "preset": preset_config,
    "setting": lambda value: preset_config("filter", value),
    "learning_rates": lambda value: preset_config("filter", learning_rates=value),
    "epochs": lambda value: preset_config("filter", epochs=value),
    "sizes": lambda value: TrainConfig("filter", value),
    "prior_width": lambda value: preset_config("filter", model={"prior_width": value}),
    "offsets": lambda value: RowSets(np.zeros((2, 1)), np.zeros((4, 1)), np.zeros(4), value),
    "choose": lambda value: RowSets(np.zeros((2, 1)), np.zeros((4, 1)), np.zeros(4), [0, 2, 4]).choose(value),
    "train rows": lambda value: train(value, value, preset_config("filter")),
    "new_folder": lambda value: new_folder("out", value),
    "load_corpus": lambda value: load_corpus(value),
    "read_headlines": read_headlines,
    "Tasks.load": Tasks.load,
    "evaluate": lambda value: evaluate(value, "out", workers=1),
    "evaluate out": lambda value: store.open_folder(value, {}).__enter__(),
    "rollout agent": lambda value: rollout(make_envs(SMALL, 1), value),
    "rollout indices": lambda value: rollout(make_envs(SMALL, 1), "random", indices=value),
    "rollout seed": lambda value: rollout(make_envs(SMALL, 1), "random", value),
    "rollout oracle": lambda value: rollout(make_envs(SMALL, 1), "random", oracle=value),
    "rollout max_steps": lambda value: rollout(make_envs(SMALL, 1), "random", max_steps=value),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@few
@given(value=odd)
def test_public_functions(name, value):
    with answer():
        FUNCTIONS[name](value)


@many
@given(value=odd, minimum=st.integers(-2, 2))
def test_checks_return_what_they_promise(value, minimum):
    with answer():
        assert type(check_integer("x", value, minimum)) is int and value >= minimum  # noqa: PT018
    with answer():
        assert math.isfinite(check_number("x", value, minimum))
    with answer():
        assert type(check_flag("x", value)) is bool
    with answer():
        assert check_choice("x", value, ["a", "b"]) in ("a", "b")
    with answer():
        array = check_array("x", value, "(n, 3)", (-1, 3))
        assert array.dtype == np.float32 and array.shape[1:] == (3,) and np.isfinite(array).all()  # noqa: PT018
    with answer():
        assert ((actions := check_actions(value, 2, 3)) >= 0).all() and actions.shape == (2,)  # noqa: PT018


@many
@given(name=st.sampled_from([*Tasks.__dataclass_fields__]), value=odd)
def test_tasks_accept_nothing_wrong(name, value):
    given = {"action_features": np.zeros((2, 3, 4)), "contexts": np.zeros((2, 5, 1)), "outcomes": np.zeros((2, 5, 3))}
    with answer():
        tasks = Tasks(**{**given, name: value})
        for array in (tasks.action_features, tasks.contexts, tasks.outcomes):
            assert array.dtype == np.float32
            assert np.isfinite(array).all()
        assert tasks.means is None or tasks.means.shape == (2, 5, 3)
        assert callable(tasks.reward_fn)
        assert isinstance(tasks.oracle, str)
        assert isinstance(tasks.space, str | None)


@many
@given(name=st.sampled_from([*EvaluationConfig.__dataclass_fields__]), value=odd | st.lists(odd, max_size=2).map(tuple))
def test_configurations(name, value):
    with answer():
        found = plan(EvaluationConfig(**{"agents": ("random",), "env": (SMALL,), "tasks": 1, name: value}))
        assert json.loads(json.dumps(found)) == found
        assert found["tasks"] >= 1
        assert found["run"]["block"] >= 1


@pytest.fixture(scope="module")
def records(results):
    return load_results(results).records[SMALL]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("fuzz") / "results"
    evaluate(EvaluationConfig(("random", "linucb"), (SMALL,), tasks=3, block=2), out, workers=1)
    return out


@many
@given(which=st.tuples(odd, odd), measure=odd, confidence=odd)
def test_comparisons(records, which, measure, confidence):
    for pair in (which, ("random", "linucb")):
        with answer():
            compare(records, *pair, measure, confidence)
    with answer():
        compare(records, "random", "linucb", "best", confidence)


# -- the command line


def run(*arguments):
    """Return exit status, and what was printed to stderr."""
    complaint, before = io.StringIO(), sys.argv
    sys.argv = ["gents-gym", *arguments]
    try:
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            cli.main()
        status = 0
    except SystemExit as stop:
        status = stop.code
    finally:
        sys.argv = before
    return status, complaint.getvalue()


OPTIONS = {
    "evaluate": ["--agents", "--env", "--tasks", "--seed", "--split", "--oracle", "--block", "--workers", "--out"],
    "report": ["", "--to"],
    "reproduce": ["", "--setting", "--scale", "--corpus", "--seed", "--models", "--out"],
    "train": ["--out", "--preset", "--env", "--data", "--epochs", "--seed", "--actions"],
    "losses": ["--models", "--env", "--seed"],
    "news": ["invent", "prepare", "--out", "--count", "--headlines"],
    "list": ["--x"],
}
BASE = {  # if they are not drawn: nothing runs at its full size
    "evaluate": {"--env": SMALL, "--out": "out", "--tasks": "1", "--agents": "random", "--workers": "1"},
    "train": {"--env": SMALL, "--out": "out", "--actions": "0"},
    "losses": {"--models": "nothing"},
    "news": {"--count": "1"},
}


@settings(few, phases=[Phase.generate])
@given(data=st.data())
def test_the_command_line(data):
    command = data.draw(st.sampled_from([*OPTIONS, "", "nothing"]))
    words = st.sampled_from([word for word in WORDS if "\0" not in word]) | st.sampled_from(["0", "-3", "2", "nan"])
    flags = data.draw(st.lists(st.sampled_from(OPTIONS.get(command, ["--help"])), max_size=3, unique=True))
    arguments = [text for flag in flags for text in (flag, data.draw(words)) if text]
    known = BASE.get(command, {})
    arguments += [text for flag, value in known.items() if flag not in flags for text in (flag, value)]
    shutil.rmtree("out", ignore_errors=True)
    with answer():
        status, complaint = run(*([command] if command else []), *arguments)
        assert status in (0, 1, 2), (arguments, complaint)
        if status == 2:
            assert complaint.startswith("gents-gym: "), arguments
            assert complaint.count("\n") == 1, complaint


# -- damaged files


def damage(data, draw):
    """Return bytes with a bit flipped, a piece cut out, or something else in its place."""
    at = draw(st.integers(0, max(0, len(data) - 1)))
    size = draw(st.sampled_from([1, 8, 100, len(data)]))
    other = draw(st.sampled_from(["flip", "cut", "zero", "random"]))
    middle = {
        "flip": bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 : at + size],
        "cut": b"",
        "zero": b"\0" * size,
        "random": draw(st.binary(min_size=size, max_size=size)) if size <= 100 else b"{}",
    }[other]
    return data[:at] + middle + data[at + size :]


def mutate(value, draw):
    """Return a JSON value with one thing in it replaced, dropped or added."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 4)):
        value = value.copy()
        key = draw(st.sampled_from(sorted(value))) if isinstance(value, dict) else draw(st.integers(0, len(value) - 1))
        value[key] = mutate(value[key], draw)
        return value
    if isinstance(value, dict) and draw(st.booleans()):
        return {**value, "more": 1} if draw(st.booleans()) else dict([*value.items()][1:])
    return draw(st.sampled_from([None, True, 0, -1, 10**13, 1.5, "", "x", "os:system", [], {}, [1], {"a": []}]))


def as_object(value):
    return value if isinstance(value, dict) else {"value": value}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return Synthetic(n_actions=2, horizon=3).sample(0, range(2)).save(tmp_path_factory.mktemp("fuzz") / "tasks")


@many
@given(data=st.data())
def test_damaged_tasks(tasks, data):
    whole = Tasks.load(tasks)
    Path("tasks").write_bytes(damage(tasks.read_bytes(), data.draw))
    with answer():
        assert Tasks.load("tasks").content_hash == whole.content_hash


@few
@given(data=st.data())
def test_damaged_results(results, data):
    """Read, and gone on with: what is accepted gives the same numbers."""
    shutil.rmtree("copy", ignore_errors=True)
    shutil.copytree(results, "copy")
    path = data.draw(st.sampled_from(sorted(path for path in Path("copy").rglob("*") if path.is_file())))
    if path.suffix == ".json" and data.draw(st.booleans()):
        value = json.loads(path.read_text())
        del value["sha256"]
        path.write_bytes(store.json_bytes({"format": store.FORMAT, **as_object(mutate(value, data.draw))}))
        with answer():
            load_results("copy")
        return
    path.write_bytes(damage(path.read_bytes(), data.draw))
    with answer():
        found, whole = (load_results(folder).records[SMALL] for folder in ("copy", results))
        assert all(np.array_equal(found[agent].actions, whole[agent].actions) for agent in whole)


@few
@given(data=st.data())
def test_damaged_corpora(data):
    folder = Path("corpus")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(BUNDLED, folder)
    path = folder / data.draw(st.sampled_from(["manifest.json", "headlines.parquet", "embeddings.safetensors"]))
    if path.suffix == ".json" and data.draw(st.booleans()):
        path.write_text(json.dumps(mutate(json.loads(path.read_text()), data.draw)))
    else:
        path.write_bytes(damage(path.read_bytes(), data.draw))
    with answer():
        assert np.array_equal(load_corpus(folder).scores, load_corpus().scores)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a model, and a training's state with its rows."""
    folder = tmp_path_factory.mktemp("fuzz")
    FilterModel(FilterConfig(2, 3)).save_pretrained(folder, {"seed": 3})
    rows = RowSets.from_rows(Synthetic().sample_actions(0, range(6), 5))
    train(rows, rows, TINY, folder / "state.safetensors")
    return folder, rows


@many
@given(data=st.data())
def test_damaged_models(trained, data):
    name = data.draw(st.sampled_from(["config.json", "model.safetensors"]))
    for each in ("config.json", "model.safetensors"):
        shutil.copy(trained[0] / each, each)
    if name == "config.json" and data.draw(st.booleans()):
        value = as_object(mutate(json.loads(Path(name).read_text()), data.draw))
        write_described(Path(), name, value, {"model.safetensors": Path("model.safetensors").read_bytes()})
    else:
        Path(name).write_bytes(damage(Path(name).read_bytes(), data.draw))
    with answer():
        whole, found = (load_model(folder).state_dict() for folder in (trained[0], Path()))
        assert all(torch.equal(tensor, found[name]) for name, tensor in whole.items())


@few
@given(data=st.data())
def test_damaged_states(trained, data):
    """Read, and gone on with, also with the right sha256."""
    folder, rows = trained
    state = Path("state.safetensors")
    if data.draw(st.booleans()):
        tensors, labels = read_sealed_tensors(folder / state, "pt")
        progress = mutate(json.loads(labels["progress"]), data.draw)
        labels |= {"progress": json.dumps(progress), "sha256": BLANK}
        state.write_bytes(seal(save(tensors, metadata=labels)))
    else:
        state.write_bytes(damage((folder / state).read_bytes(), data.draw))
    with answer():
        train(rows, rows, TINY, state)
