import numpy as np

from gents_gym.policies.logistic import Logistic
from gents_gym.policies.pool import fit_tasks
from gents_gym.tasks.synthetic import Synthetic

TASKS = Synthetic(n_actions=5, horizon=40).sample(0, range(2))


def test_actions_that_can_be_played_are_scored_as_ever_and_others_never_win():
    available = np.zeros((2, 40, 5), bool)
    available[0, :, 3] = available[0, 7, 1] = True  # two actions of the first task, three of the second
    available[1, :20, [0, 4]] = available[1, 20:, 2] = True
    whole, some = fit_tasks(Logistic(), TASKS), fit_tasks(Logistic(), TASKS.with_available(available))
    for contexts in (TASKS.contexts, TASKS.contexts[:, 5]):
        full, found = whole.scores(contexts), some.scores(contexts)
        for i, ever in enumerate(([1, 3], [0, 2, 4])):
            assert np.allclose(found[i][..., ever], full[i][..., ever], atol=1e-6)
            assert np.isinf(np.delete(found[i], ever, axis=-1)).all()


def test_without_a_mask_nothing_changes():
    one, two = fit_tasks(Logistic(), TASKS), Logistic().fit(TASKS.contexts, TASKS.outcomes)
    assert np.array_equal(one.coefficients, two.coefficients)
