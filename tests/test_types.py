import functools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from gents_gym import ActionRows, InputError, TaskInfo, Tasks
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import Truth


def half(outcome):
    return 0.5 * outcome


@pytest.fixture
def tasks():
    return Synthetic(n_actions=3, horizon=7).sample(0, range(4))


def same(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left._arrays().values(), right._arrays().values(), strict=True))


def test_batch_is_sized_indexed_and_read_only(tasks):
    assert (len(tasks), tasks.n_actions, tasks.horizon, tasks.context_dim) == (4, 3, 7, 5)
    assert len(tasks[2]) == 1
    assert np.array_equal(tasks[2].outcomes[0], tasks.outcomes[2])
    assert np.array_equal(tasks[[3, 1]].contexts, tasks.contexts[[3, 1]])
    with pytest.raises(ValueError, match="read-only"):
        tasks.outcomes[0, 0, 0] = 1


def test_freezing_leaves_the_callers_array_alone():
    outcomes = np.zeros((1, 2, 2), np.float32)
    Tasks(np.zeros((1, 2, 1)), np.zeros((1, 2, 1)), outcomes)
    outcomes[0, 0, 0] = 1


def test_put_replaces_some_tasks_in_a_copy(tasks):
    others = Synthetic(n_actions=3, horizon=7).sample(1, range(2))
    mixed = tasks.put(np.array([0, 3]), others)
    assert same(mixed[[0, 3]], others)
    assert same(mixed[[1, 2]], tasks[[1, 2]])
    unknown = Tasks(others.action_features, others.contexts, others.outcomes)
    assert tasks.put(np.array([0, 3]), unknown).means is None


def test_rewards_are_r_of_the_outcomes(tasks):
    halved = Tasks(tasks.action_features, tasks.contexts, tasks.outcomes, reward_fn=half)
    assert np.array_equal(halved.rewards, tasks.outcomes / 2)


def test_hashes_tell_tasks_apart_and_do_not_depend_on_the_batch(tasks):
    assert len(set(tasks.hashes)) == 4
    assert tasks[1:3].hashes == tasks.hashes[1:3]
    assert tasks.content_hash != tasks[:3].content_hash


def test_save_and_load_round_trip(tasks, tmp_path):
    path = tasks.save(tmp_path / "tasks.safetensors")
    loaded = Tasks.load(path)
    assert same(loaded, tasks)
    assert (loaded.oracle, loaded.content_hash) == (tasks.oracle, tasks.content_hash)
    assert [p.name for p in tmp_path.iterdir()] == ["tasks.safetensors"]


def test_load_never_brings_code_and_wants_the_same_reward(tasks, tmp_path):
    halved = Tasks(tasks.action_features, tasks.contexts, tasks.outcomes, reward_fn=half)
    path = halved.save(tmp_path / "tasks.safetensors")
    with pytest.raises(InputError, match=r"reward_fn must be the one in the file, .*:half, got .*:identity"):
        Tasks.load(path)
    assert Tasks.load(path, reward_fn=half).means is None


def test_every_flipped_bit_is_noticed_and_saving_is_reproducible(tmp_path):
    small = Synthetic(n_actions=2, horizon=1, context_dim=2).sample(0, [0])
    path = small.save(tmp_path / "tasks.safetensors")
    data = path.read_bytes()
    assert small.save(tmp_path / "again").read_bytes() == data
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(InputError):
            Tasks.load(path)


def test_pickled_tasks_stay_read_only(tasks):
    copy = pickle.loads(pickle.dumps(tasks))
    assert same(copy, tasks)
    with pytest.raises(ValueError, match="read-only"):
        copy.outcomes[0, 0, 0] = 1


def test_saving_names_what_is_wrong(tasks, tmp_path):
    with pytest.raises(InputError, match=r"path must lie in a folder that exists, got '.*/no/x'"):
        tasks.save(tmp_path / "no" / "x")
    nameless = Tasks(tasks.action_features, tasks.contexts, tasks.outcomes, reward_fn=functools.partial(half))
    with pytest.raises(InputError, match="reward_fn must be a function with a name to be saved"):
        nameless.save(tmp_path / "x")


def test_load_refuses_what_is_damaged_or_foreign(tasks, tmp_path):
    path = tasks.save(tmp_path / "tasks.safetensors")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="is damaged"):
        Tasks.load(path)
    path.write_bytes(data[:-40])
    with pytest.raises(InputError, match=r"must be a whole file written by Tasks\.save"):
        Tasks.load(path)
    save_file({"x": np.zeros(3)}, tmp_path / "foreign.safetensors")
    for other in ("foreign.safetensors", "missing", "."):
        with pytest.raises(InputError, match=r"must be a whole file written by Tasks\.save"):
            Tasks.load(tmp_path / other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contexts": np.zeros((3, 7, 5))}, r"contexts must have shape \(B, T, D\), got \(3, 7, 5\)"),
        ({"contexts": np.zeros((4, 7))}, r"contexts must have shape \(B, T, D\), got \(4, 7\)"),
        ({"outcomes": np.zeros((4, 7, 2))}, r"outcomes must have shape \(B, T, A\)=\(4, 7, 3\), got \(4, 7, 2\)"),
        ({"means": np.zeros((4, 6, 3))}, r"means must have shape \(B, T, A\)=\(4, 7, 3\), got \(4, 6, 3\)"),
        ({"contexts": np.full((4, 7, 5), np.nan)}, r"contexts must be finite, got nan at index \(0, 0, 0\)"),
        ({"outcomes": "abc"}, "outcomes must be an array of numbers, got str"),
        ({"outcomes": None}, "outcomes must be an array of numbers, got NoneType"),
        ({"means": 7}, r"means must have shape \(B, T, A\)=\(4, 7, 3\), got \(\)"),
        ({"contexts": np.zeros((4, 7, 5)) + 1j}, "contexts must be an array of numbers, got dtype complex128"),
        ({"contexts": np.full((4, 7, 5), "1")}, "contexts must be an array of numbers, got dtype <U1"),
        ({"contexts": np.zeros((4, 7, 5), "M8[s]")}, "contexts must be an array of numbers, got dtype datetime64"),
        ({"contexts": np.full((4, 7, 5), 1e300)}, r"contexts must be finite, got inf at index \(0, 0, 0\)"),
        ({"reward_fn": 3}, "reward_fn must be a function of outcomes, got 3"),
        ({"space": 3}, "space must be a text or None, got 3"),
        ({"oracle": 7}, "oracle must be the id of a policy class or None, got 7"),
        ({"truth": 3}, "truth must be a Truth or None, got 3"),
    ],
)
def test_bad_arrays_are_named(tasks, change, message):
    good = {"action_features": tasks.action_features, "contexts": tasks.contexts, "outcomes": tasks.outcomes}
    with pytest.raises(InputError, match=message):
        Tasks(**{**good, **change})


def test_a_task_has_two_actions_a_decision_and_a_context_at_least():
    with pytest.raises(InputError, match="the number of actions must be at least 2, got 1"):
        Tasks(np.zeros((1, 1, 2)), np.zeros((1, 3, 2)), np.zeros((1, 3, 1)))
    with pytest.raises(InputError, match="the horizon T must be at least 1, got 0"):
        Tasks(np.zeros((1, 2, 2)), np.zeros((1, 0, 2)), np.zeros((1, 0, 2)))
    with pytest.raises(InputError, match="the context size D must be at least 1, got 0"):
        Tasks(np.zeros((1, 2, 2)), np.zeros((1, 3, 0)), np.zeros((1, 3, 2)))


def test_action_rows_check_their_shapes():
    with pytest.raises(InputError, match=r"outcomes must have shape \(N, R\)=\(2, 3\), got \(2, 4\)"):
        ActionRows(np.zeros((2, 1)), np.zeros((2, 3, 5)), np.zeros((2, 4)))


def test_task_info_of_one_task_keeps_everything_else():
    info = TaskInfo(np.arange(12.0).reshape(3, 2, 2), 2, 5, 7, half, [["a", "b"], ["c", "d"], ["e", "f"]])
    one = info[1]
    assert np.array_equal(one.action_features, info.action_features[1:2])
    assert (len(one), one.horizon, one.reward_fn, one.texts) == (1, 7, half, [["c", "d"]])


def with_texts(n_tasks=3):
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape) for shape in ((n_tasks, 2, 3), (n_tasks, 4, 2), (n_tasks, 4, 2))]
    texts = [[f"task {i}, “first”", f"task {i}, second"] for i in range(n_tasks)]
    return Tasks(*arrays, hidden_features=rng.random((n_tasks, 2, 2)), texts=texts)


def test_texts_and_hidden_features_go_with_their_tasks(tmp_path):
    tasks = with_texts()
    assert tasks[1].texts.tolist() == [["task 1, “first”", "task 1, second"]]
    assert np.array_equal(tasks[[2, 0]].hidden_features, tasks.hidden_features[[2, 0]])
    put = tasks.put(np.array([0]), tasks[2])
    assert put.texts[:, 1].tolist() == ["task 2, second", "task 1, second", "task 2, second"]
    assert np.array_equal(put.hidden_features[0], tasks.hidden_features[2])
    bare = Tasks(tasks.action_features, tasks.contexts, tasks.outcomes)
    assert tasks.put(np.array([0]), bare[2]).texts is None
    assert bare.put(np.array([0]), tasks[2]).hidden_features is None
    again = Tasks.load(tasks.save(tmp_path / "tasks.safetensors"))
    assert again.texts.tolist() == tasks.texts.tolist()
    assert again.hashes == tasks.hashes
    assert tasks.hashes != bare.hashes


@pytest.mark.parametrize(
    "texts", [[["a", "b"]], [["a", "b"], ["c"], ["d", "e"]], [["a", 1], ["b", "c"], ["d", "e"]], "abc"]
)
def test_bad_texts(texts):
    tasks = with_texts()
    with pytest.raises(InputError, match=r"texts must be texts of shape \(B, A\)=\(3, 2\), got shape"):
        Tasks(tasks.action_features, tasks.contexts, tasks.outcomes, texts=texts)


def test_bad_hidden_features():
    tasks = with_texts()
    with pytest.raises(InputError, match=r"hidden_features must have shape \(B, A, H\)"):
        Tasks(tasks.action_features, tasks.contexts, tasks.outcomes, hidden_features=np.zeros((3, 1, 2)))
    with pytest.raises(InputError, match=r"hidden_features must have shape \(N, H\)"):
        ActionRows(np.zeros((2, 1)), np.zeros((2, 3, 1)), np.zeros((2, 3)), hidden_features=np.zeros((1, 2)))


def amounts(tasks, **others):
    return Tasks(tasks.action_features, tasks.contexts, 7 * tasks.outcomes, **others)


def test_outcomes_say_their_likelihood_unless_it_is_given(tasks):
    bare = Tasks(tasks.action_features, tasks.contexts, tasks.outcomes)
    assert (bare.likelihood, bare.oracle) == (BERNOULLI, "logistic")
    assert (amounts(tasks).likelihood, amounts(tasks).oracle) == (GAUSSIAN, "least-squares")
    stated = replace(bare, likelihood=Categorical(4))
    assert stated[1].likelihood == stated.put(np.array([0]), stated[2]).likelihood == Categorical(4)
    assert stated.put(np.array([0]), amounts(tasks)[2]).likelihood == GAUSSIAN
    rows = ActionRows(np.zeros((1, 2)), np.zeros((1, 3, 2)), [[0, 1, 7]])
    assert rows.likelihood == GAUSSIAN


def test_outcomes_must_be_those_of_the_likelihood(tasks):
    with pytest.raises(InputError, match="outcomes must be 0 or 1, got 7"):
        amounts(tasks, likelihood=BERNOULLI)
    with pytest.raises(InputError, match="outcomes must be a whole number from 0 to 2, got 7"):
        ActionRows(np.zeros((1, 2)), np.zeros((1, 3, 2)), [[0, 1, 7]], likelihood=Categorical(3))
    with pytest.raises(InputError, match=r"likelihood must be a Bernoulli, Gaussian or Categorical .* got 'gaussian'"):
        amounts(tasks, likelihood="gaussian")


def test_rewards_must_be_finite(tasks):
    with pytest.raises(InputError, match="R of the outcomes must be finite, got inf"):
        replace(tasks, reward_fn=lambda y: np.where(y > 0, np.inf, 0)).rewards  # noqa: B018
    assert amounts(tasks).rewards.max() == 7


@pytest.mark.parametrize(
    ("likelihood", "factor"),
    [(BERNOULLI, 1), (GAUSSIAN, 1), (Categorical(3), 1), (None, 1), (GAUSSIAN, 2.5), (Categorical(9), 8), (None, 2.5)],
)
def test_files_keep_the_likelihood(tasks, tmp_path, likelihood, factor):
    outcomes = factor * tasks.outcomes
    batch = Tasks(tasks.action_features, tasks.contexts, outcomes, likelihood=likelihood)
    assert Tasks.load(batch.save(tmp_path / "tasks")).likelihood == batch.likelihood


def test_files_say_a_likelihood_only_where_outcomes_do_not(tasks, tmp_path):
    """So files that know nothing of likelihoods are files like any other."""
    assert b"likelihood" not in tasks.save(tmp_path / "coins").read_bytes()
    assert b"likelihood" not in amounts(tasks).save(tmp_path / "amounts").read_bytes()
    assert b"categorical(3)" in replace(tasks, likelihood=Categorical(3)).save(tmp_path / "three").read_bytes()


def test_a_truth_is_kept_by_batches_of_one_distribution(tasks):
    truth, other = Truth(lambda z: (z, z)), Truth(lambda z: (z, z))
    told = replace(tasks, truth=truth)
    assert told[1].truth is told.put(np.array([0]), told[1]).truth is truth
    assert told.put(np.array([0]), replace(tasks, truth=other)[1]).truth is None
    assert told.content_hash == tasks.content_hash


def test_what_is_known_of_one_task():
    known = np.arange(24.0).reshape(2, 4, 3)
    info = TaskInfo(np.zeros((2, 3, 1)), 3, 3, likelihood=GAUSSIAN, known_contexts=known)
    assert np.array_equal(info[1].known_contexts, known[1:])
    assert info[1].likelihood == GAUSSIAN
    assert TaskInfo(np.zeros((2, 3, 1)), 3, 3)[0].known_contexts is None


@pytest.mark.parametrize(
    "oracle", ["os:system(command='touch pwned')", "planted:Policy", "constrained(base='planted:Policy')"]
)
def test_a_file_never_brings_code(tasks, oracle, tmp_path, monkeypatch):
    """Its oracle is a text that is imported and called when regret is computed, so only ids may come from it."""
    (tmp_path / "planted.py").write_text("open('pwned', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    path = replace(tasks, oracle=oracle).save(tmp_path / "tasks.safetensors")
    with pytest.raises(InputError, match=r"oracle in a file must use registered ids, never package\.module:Class"):
        Tasks.load(path)
    assert Tasks.load(path, oracle=oracle).oracle == oracle  # named by the caller
    with pytest.raises(InputError, match=r"oracle must be the one in the file, .*, got 'mlp'"):
        Tasks.load(path, oracle="mlp")
    assert not (tmp_path / "pwned").exists()
