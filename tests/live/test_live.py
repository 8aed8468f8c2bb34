import contextlib
import sqlite3
import sys
import threading
import types

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import Gaussian, InputError, rollout
from gents_gym.live.live import Live
from gents_gym.logs.encoding import Column, Encoding
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.joint import JointConfig, JointModel
from gents_gym.models.transformer import TransformerConfig, TransformerModel
from gents_gym.tasks.synthetic import Synthetic

TASKS = Synthetic(n_actions=5, horizon=24).sample(3, range(2))
MODEL = "synthetic-filter"


def open_live(path, agent="greedy", **options):
    return Live(path, agent, MODEL, **options)


def add_all(live, task=0, stream="main"):
    for i, features in enumerate(TASKS.action_features[task]):
        live.add(f"item-{i}", features, stream=stream)


def play(live, steps, task=0, stream="main"):
    """Decide and learn in time; return the numbers of the actions."""
    found = []
    for t in steps:
        decision = live.decide(TASKS.contexts[task, t], stream=stream)
        found.append(int(decision.action.removeprefix("item-")))
        live.outcome(decision.id, TASKS.outcomes[task, t, found[-1]])
    return found


def test_in_time_it_plays_as_the_bare_agent(tmp_path):
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, n_actions=5, horizon=24, autoreset_mode="Disabled")
    expected = rollout(envs, f"greedy(model={MODEL})", seed=3).actions
    with open_live(tmp_path / "live.db") as live:
        for task in range(2):
            add_all(live, task, f"stream-{task}")
            assert play(live, range(24), task, f"stream-{task}") == expected[task].tolist()


def script(seed):
    """Return random steps: decisions, late and lost outcomes, actions that come and go."""
    rng, steps, waiting, n_actions = np.random.default_rng(seed), [], [], 3
    retired = set()
    for t in range(40):
        steps.append(("decide", rng.normal(size=5)))
        waiting.append(t)
        rng.shuffle(waiting)
        while waiting and rng.random() < 0.5:
            steps.append(("outcome", waiting.pop(), float(rng.random() < 0.5)))
        if rng.random() < 0.2:
            steps.append(("add", n_actions, rng.normal(size=2)))
            n_actions += 1
        if rng.random() < 0.1 and len(retired) < n_actions - 2:
            retired.add(min(set(range(n_actions)) - retired))
            steps.append(("retire", max(retired)))
    return [("add", i, rng.normal(size=2)) for i in range(3)] + steps


def run(path, agent, stops=(), **options):
    """Play a script, with restarts before the steps in ``stops``; return the decisions and the belief's state."""
    live, made = open_live(path, agent, **options), []
    for i, (verb, *given) in enumerate(script(0)):
        if i in stops:
            live.close()
            live = open_live(path, agent, **options)
        if verb == "decide":
            made.append(live.decide(*given))
        elif verb == "outcome":
            live.outcome(made[given[0]].id, given[1])
        elif verb == "add":
            live.add(f"item-{given[0]}", given[1])
        else:
            live.retire(f"item-{given[0]}")
    state = live._stream("main")._begun().belief.state()
    live.close()
    return made, state


@pytest.mark.parametrize(("agent", "every"), [("ts-gen(m=4)", None), ("ts-gen(m=4)", 7), ("softmax", 7)])
def test_a_restart_changes_nothing(tmp_path, agent, every):
    options = {"snapshot_every": every, "window": 12}
    made, state = run(tmp_path / "a.db", agent, **options)
    again, other = run(tmp_path / "b.db", agent, stops=(1, 9, 10, 30, 55, 56), **options)
    assert made == again
    assert state.keys() == other.keys()
    assert all(np.array_equal(state[name], other[name]) for name in state)
    assert state["actions"].shape[1] <= 12 + 3


def test_retired_and_unavailable_actions_are_not_played(tmp_path):
    with open_live(tmp_path / "live.db", "softmax(temperature=100)") as live:
        add_all(live)
        live.retire("item-2")
        assert {live.decide(TASKS.contexts[0, 0]).action for _ in range(40)} == {f"item-{i}" for i in (0, 1, 3, 4)}
        some = [live.decide(TASKS.contexts[0, 0], available=["item-1", "item-4"]).action for _ in range(20)]
        assert set(some) == {"item-1", "item-4"}


@pytest.mark.parametrize("agent", ["ts-gen(m=4)", "gen-kg(discount=0.9)", "softmax"])
def test_among_some_actions_it_plays_as_if_there_were_no_others(tmp_path, agent):
    """One store has only the even items; another has all, and the odd ones are sometimes not available."""
    even = ["item-0", "item-2", "item-4"]
    with open_live(tmp_path / "few.db", agent) as few, open_live(tmp_path / "all.db", agent) as full:
        add_all(full)
        for name in even:
            few.add(name, TASKS.action_features[0, int(name[-1])])
        for t in range(6):
            one, other = few.decide(TASKS.contexts[0, t]), full.decide(TASKS.contexts[0, t], even)
            assert one.action == other.action
            assert one.probability == pytest.approx(other.probability, abs=1e-6)
            for live, made in ((few, one), (full, other)):
                live.outcome(made.id, t % 2)


def test_a_single_action_is_played_for_sure(tmp_path):
    with open_live(tmp_path / "live.db", "ts-gen(m=4)") as live:
        live.add("only", [0.0, 1.0])
        made = live.decide(TASKS.contexts[0, 0])
        assert (made.action, made.probability) == ("only", 1.0)
        live.outcome(made.id, 1.0)


def test_votes_are_asked_for(tmp_path):
    with (
        open_live(tmp_path / "live.db", "ts-gen(m=4, votes=4)") as live,
        open_live(tmp_path / "b.db", "softmax") as soft,
    ):
        add_all(live)
        add_all(soft)
        made = [live.decide(TASKS.contexts[0, t], votes=t % 2 == 1).probability for t in range(4)]
        assert made[0] is made[2] is None
        assert {made[1], made[3]} <= {0.25, 0.5, 0.75, 1.0}
        assert 0 < soft.decide(TASKS.contexts[0, 0]).probability < 1


def test_memory_is_bounded(tmp_path):
    """Decisions whose outcomes never arrive are forgotten too; a late outcome is kept in the store alone."""
    with open_live(tmp_path / "live.db", window=20, snapshot_every=None) as live:
        add_all(live)
        live._store._db.execute("PRAGMA synchronous = OFF")
        first, sizes = live.decide(TASKS.contexts[0, 0]), []
        for t in range(150):
            live.decide(TASKS.contexts[0, t % 24])
            if t % 25 == 24:
                sizes.append(len(live._stream("main").state()))
        assert len(set(sizes[1:])) <= 5
        assert max(sizes) < 4000
        stream = live._stream("main")
        assert len(stream._open) <= 25
        before = stream.state()
        live.outcome(first.id, 1.0)
        assert stream.state() == before
        assert live._store.has_outcome(first.id)


@pytest.mark.parametrize("given", [None, "gaussian"])
def test_outcomes_of_other_kinds(tmp_path, given):
    with Live(tmp_path / "live.db", "greedy", "synthetic-filter-gaussian", likelihood=given) as live:
        add_all(live)
        made = live.decide(TASKS.contexts[0, 0])
        live.outcome(made.id, 0.5)
        assert live._stream("main").shared.model.likelihood == Gaussian()


def test_a_model_of_many_settings_takes_the_sizes_of_the_first(tmp_path):
    with Live(tmp_path / "live.db", "greedy", "general") as live:
        for name in "abc":
            live.add(name, np.ones(3))
        with pytest.raises(InputError, match="general has any and at most 10, bernoulli outcomes"):
            live.decide(np.zeros(11))
        for _ in range(4):
            live.outcome(live.decide([0.5, -0.5]).id, 1)
        with pytest.raises(InputError, match=r"context must have shape \(D,\)=\(2,\), got \(3,\)"):
            live.decide(np.zeros(3))


def test_the_sizes_of_a_model_s_folder_hold_from_the_first_action_on(tmp_path):
    with open_live(tmp_path / "live.db") as live:
        with pytest.raises(InputError, match=r"features must have shape \(F,\)=\(2,\), got \(3,\)"):
            live.add("a", [1, 2, 3])
        live.add("a", [1, 2])
        with pytest.raises(InputError, match=r"context must have shape \(D,\)=\(5,\), got \(4,\)"):
            live.decide(np.zeros(4))
        with pytest.raises(InputError, match="context must be an array of numbers for a model without columns of a"):
            live.decide({"age": 30})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a model whose log had named columns and categories."""
    encoding = Encoding((Column("age"), Column("device", ("ios", "web"))), (Column("kind", ("hat", "shoe")),))
    folder = tmp_path_factory.mktemp("models") / "site"
    return str(FilterModel(FilterConfig(2, 3)).save_pretrained(folder, {"columns": encoding.to_json()}))


def test_values_by_name_are_encoded_as_the_model_s_log(tmp_path, site):
    rows = [{"age": 30, "device": "ios"}, {"device": "web", "age": True}]
    with Live(tmp_path / "names.db", "softmax", site) as live, Live(tmp_path / "b.db", "softmax", site) as plain:
        live.add("007", {"kind": "hat"})
        live.add("x", [0, 1])
        plain.add("007", [1, 0])
        plain.add("x", [0, 1])
        for named, numbers in zip(rows, ([30, 1, 0], [1, 0, 1]), strict=True):
            one, other = live.decide(named), plain.decide(numbers)
            assert one == other
        for store in (live._store, plain._store):
            assert [event.vector for event in store.events()] == [event.vector for event in live._store.events()]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"age": 30}, "context must have a value for each column of the model, age, device, got none for 'device'"),
        ({"age": 3, "device": "ios", "hour": 1}, "age, device, got the unknown column 'hour'"),
        ({"age": 3, "device": "tv"}, "column 'device' of context must have a level .*, ios, web, got 'tv'"),
        ({"age": 3, "device": np.zeros(2)}, "column 'device' of context must have a level that the model knows"),
        ({"age": "3", "device": "ios"}, "column 'age' of context must be a number, got '3'"),
        ({"age": np.nan, "device": "ios"}, "column 'age' of context must be finite, got nan"),
    ],
)
def test_names_and_levels_that_the_model_does_not_know(tmp_path, site, context, message):
    with Live(tmp_path / "live.db", "greedy", site) as live:
        live.add("a", {"kind": "hat"})
        with pytest.raises(InputError, match=message):
            live.decide(context)
        assert [event.kind for event in live._store.events()] == ["add"]


def test_threads_share_one(tmp_path):
    with open_live(tmp_path / "live.db") as live:
        add_all(live)
        made = []

        def work():
            for t in range(10):
                decision = live.decide(TASKS.contexts[0, t])
                live.outcome(decision.id, 1.0)
                made.append(decision.id)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(made)) == 30
        assert live._stream("main").number == 30


def test_features_of_texts(tmp_path):
    with open_live(tmp_path / "live.db", encode=lambda text: [len(text), 1.0]) as live:
        live.add("a", text="abc")
        live.add("b", [3.0, 1.0])
        features = live._stream("main").features
        assert np.array_equal(*features)


BAD = {
    "unknown decision": (
        lambda live, made: live.outcome(99, 1),
        "decision must be the id of one that was made, got 99",
    ),
    "second outcome": (lambda live, made: live.outcome(made.id, 1), "an outcome must arrive once for each decision"),
    "wrong outcome": (lambda live, made: live.outcome(made.id + 2, 0.5), "value must be 0 or 1, got 0.5"),
    "no outcome": (lambda live, made: live.outcome(made.id + 2, None), "value must be a number, got None"),
    "huge outcome": (lambda live, made: live.outcome(made.id + 2, 1e39), "value must be finite, got inf"),
    "retired": (lambda live, made: live.decide(np.zeros(5), ["item-4"]), "available must be actions that are not ret"),
    "retired twice": (lambda live, made: live.retire("item-4"), "action must not be retired already, got 'item-4'"),
    "unknown action": (lambda live, made: live.retire("x"), "action must be one of stream 'main', got 'x'"),
    "added again": (lambda live, made: live.add("item-4", [0, 0]), "got 'item-4', which was retired"),
    "small context": (
        lambda live, made: live.decide(np.zeros(4)),
        r"context must have shape \(D,\)=\(5,\), got \(4,\)",
    ),
    "NaN": (lambda live, made: live.decide(np.full(5, np.nan)), "context must be finite"),
    "nothing available": (lambda live, made: live.decide(np.zeros(5), []), "at least one action must be available"),
    "not a list": (lambda live, made: live.decide(np.zeros(5), 3), "available must be a list of actions, got 3"),
    "a text": (lambda live, made: live.decide(np.zeros(5), "item-1"), "must be a list of actions, got 'item-1'"),
    "no features": (lambda live, made: live.add("new"), "features or text must be given, one of them"),
    "unknown stream": (lambda live, made: live.snapshot("man"), "unknown stream 'man'; did you mean 'main'?"),
    "features of another stream": (
        lambda live, made: live.add("new", [1], stream="new"),
        r"features must have shape \(F,\)=\(2,\), got \(1,\)",
    ),
    "other features": (lambda live, made: live.add("new", [1, 2, 3]), r"features must have shape \(F,\)=\(2,\)"),
    "text without encode": (lambda live, made: live.add("new", text="x"), "encode must be given to Live"),
    "empty stream": (lambda live, made: live.decide(np.zeros(5), stream="new"), "available in stream 'new', got none"),
}


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A store in use, and its first decision, whose outcome has arrived; that of the next has not."""
    with open_live(tmp_path_factory.mktemp("live") / "live.db") as live:
        add_all(live)
        live.retire("item-4")
        made = live.decide(TASKS.contexts[0, 0])
        live.outcome(made.id, 1.0)
        live.decide(TASKS.contexts[0, 1])
        yield live, made


@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(used, name):
    (live, made), (call, message) = used, BAD[name]
    before = list(live._store.events())
    with pytest.raises(InputError, match=message):
        call(live, made)
    assert list(live._store.events()) == before
    assert live._streams.keys() == {"main"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": "softmax"}, "store must have agent 'softmax', got .* with 'greedy'"),
        ({"seed": 1}, "store must have seed 1, got .* with 0"),
        ({"model": "synthetic-filter-100"}, "model must be the one that the store was begun with"),
    ],
)
def test_another_agent_or_model_is_refused(tmp_path, options, message):
    path = tmp_path / "live.db"
    with open_live(path) as live:
        add_all(live)
        play(live, range(2))
    with pytest.raises(InputError, match=message):
        Live(path, **{"agent": "greedy", "model": MODEL, **options})
    with open_live(path) as live:  # it is free again
        assert live._stream("main").number == 2


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("linucb", "agent must act on a model for live use, as ts-gen does, got 'linucb'"),
        ("greedy(model=filter)", "agent must be given without its model, which is an argument of its own"),
        ("greeedy", "unknown agent 'greeedy'; did you mean 'greedy'?"),
        (f"{__name__}:Unmasked", r"agent must have act\(context, available\) for live use, got '.*Unmasked'"),
        ("ts-gen", "m must be given if the horizon is not known"),
    ],
)
def test_agents_that_cannot_live_are_refused(tmp_path, monkeypatch, agent, message):
    monkeypatch.setitem(sys.modules, __name__, types.SimpleNamespace(Unmasked=Unmasked))

    def decide():
        with open_live(tmp_path / "live.db", agent) as live:
            add_all(live)
            live.decide(TASKS.contexts[0, 0])

    with pytest.raises(InputError, match=message):
        decide()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("exact", "model must be a trained one for live use, got 'exact', which knows the truth of simulated tasks"),
        (JointModel(JointConfig(2, 5)), "model must be one of single actions, .* for live use, got JointModel"),
        ("models/none", "unknown model or folder 'models/none'"),
    ],
)
def test_models_that_cannot_live_are_refused(tmp_path, model, message):
    def decide():
        with Live(tmp_path / "live.db", "greedy", model) as live:
            add_all(live)
            live.decide(TASKS.contexts[0, 0])

    with pytest.raises(InputError, match=message):
        decide()


class Unmasked:
    """An agent on a model that cannot play among some of the actions."""

    def __init__(self, model):
        pass

    def reset(self, info, rngs):
        pass

    def act(self, context):
        return np.zeros(1, np.int64)

    def observe(self, context, action, outcome):
        pass


def test_a_first_decision_that_fails_decides_no_size(tmp_path):
    with Live(tmp_path / "live.db", "greedy", "untrained", reward_fn=lambda outcome: outcome / 0) as live:
        add_all(live)
        with np.errstate(all="ignore"), pytest.raises(InputError, match="what the model expects must be finite"):
            live.decide(np.zeros(4))
        assert "context_dim" not in live._store.facts()
    with Live(tmp_path / "live.db", "greedy", "untrained") as live:
        live.decide(np.zeros(5))
        assert live._store.facts()["context_dim"] == 5


def test_a_history_that_is_too_long_for_the_model_is_refused_and_nothing_is_lost(tmp_path):
    model = TransformerModel(TransformerConfig(2, 5, width=8, heads=1, layers=1, longest=3, positions=1))
    model.save_pretrained(tmp_path / "model")
    path = tmp_path / "live.db"
    with Live(path, "bayes-ucb(discount=0.9)", tmp_path / "model") as live:
        add_all(live)
        made = [live.decide(TASKS.contexts[0, t], ["item-1"]) for t in range(4)]
        for decision in made[:3]:
            live.outcome(decision.id, 1)
        with pytest.raises(InputError, match="histories must have at most 3 rows for this model, got 4"):
            live.outcome(made[3].id, 1)
        assert [event.kind for event in live._store.events()].count("outcome") == 3
        live.decide(TASKS.contexts[0, 4])
    with Live(path, "bayes-ucb(discount=0.9)", tmp_path / "model") as live:
        live.retire("item-1")
        live.outcome(live.decide(TASKS.contexts[0, 5]).id, 0)


def test_a_second_writer_is_refused(used):
    with pytest.raises(InputError, match="store must have one writer at a time"):
        open_live(used[0]._store.path)


def test_other_files_are_refused(tmp_path):
    damaged, other, torn = tmp_path / "damaged.db", tmp_path / "other.db", tmp_path / "torn.db"
    with open_live(torn) as live:
        add_all(live)
        live.snapshot()
        live._store._db.execute("UPDATE snapshots SET state = x'00'")
    with open_live(torn) as live, pytest.raises(InputError, match="the snapshot of stream 'main' must be whole"):
        live.retire("item-0")
    damaged.write_bytes(b"no database at all" * 100)
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (a)")
    db.close()
    with pytest.raises(InputError, match=r"store '.*damaged.db' cannot be read or written \(file is not a database\)"):
        open_live(damaged)
    with pytest.raises(InputError, match=r"store must be a file of decisions, got .*, which is another database"):
        open_live(other)


def test_a_locked_database_is_refused(tmp_path):
    path = tmp_path / "live.db"
    with open_live(path) as live, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        add_all(live)
        live._store._db.execute("PRAGMA busy_timeout = 10")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match=r"cannot be read or written \(database is locked\): nothing was changed"):
            live.decide(TASKS.contexts[0, 0])
        other.execute("ROLLBACK")
        live.decide(TASKS.contexts[0, 0])
        assert live._stream("main").number == 1


def test_a_snapshot_that_fails_takes_no_decision_back(tmp_path, monkeypatch):
    with open_live(tmp_path / "live.db", snapshot_every=2) as live:
        add_all(live)

        def fail(*_):
            raise InputError("the disk is full")

        monkeypatch.setattr(live._store, "set_snapshot", fail)
        assert [live.decide(TASKS.contexts[0, t]).id for t in range(3)] == [6, 7, 8]


def test_a_full_disk_loses_nothing(tmp_path):
    with open_live(tmp_path / "live.db", encode=lambda text: np.zeros(2)) as live:
        add_all(live)
        play(live, range(3))
        pages = live._store._db.execute("PRAGMA page_count").fetchone()[0]
        live._store._db.execute(f"PRAGMA max_page_count = {pages}")

        def fill():
            for t in range(3, 24):
                live.add(f"long-{t}", text=" " * 2000)

        with pytest.raises(InputError, match=r"cannot be read or written \(database or disk is full\)"):
            fill()
        live._store._db.execute("PRAGMA max_page_count = 100000")
        number = live._stream("main").number
        events = [event.kind for event in live._store.events("main")]
        assert (events.count("decide"), events.count("add")) == (number, len(live._stream("main").actions))
        live.decide(TASKS.contexts[0, 3])
        assert live._stream("main").number == number + 1


@pytest.mark.parametrize("agent", ["ts-gen", "gen-kg", "bayes-ucb", "auto"])
def test_an_agent_that_can_never_decide_is_refused_before_a_store_is_made(agent, tmp_path):
    with pytest.raises(InputError, match=r"agent must .*horizon"):
        Live(tmp_path / "store.db", agent, "synthetic-filter")
    assert not (tmp_path / "store.db").exists()
