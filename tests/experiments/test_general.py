"""Tests the study of the model general at its tiny scale: ranks, differences, and that its settings can be played."""

import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.evaluation.environments import env_distribution
from gents_gym.evaluation.store import load_results
from gents_gym.experiments.general import AGENTS, FAVOURITE, OWN, RIVAL, SETTINGS, SHORT, general
from gents_gym.experiments.ranks import average_ranks


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return general(tmp_path_factory.mktemp("study") / "general", "tiny", workers=1)


def test_the_page_ranks_the_agents_and_compares_them_with_general(played):
    text = played.read_text()
    records = {env: dict(part) for env, part in load_results(played.parent / "run").records.items()}
    assert [part.pop("oracle").privileged for part in records.values()] == [True, True, True]
    ranks, gaps = average_ranks(records), average_ranks(records, against=RIVAL)
    assert f"| minus `{RIVAL}`, paired, 95 % |" in text
    for agent, rank in ranks.items():
        gap = "" if agent == RIVAL else "{0.mean:+.2f} ({0.low:+.2f} to {0.high:+.2f})".format(gaps[agent])
        assert f"| {agent} | {rank.mean:.2f} | {rank.low:.2f} to {rank.high:.2f} | {gap} |" in text
    cells = []
    for part in records.values():
        gap = (part[FAVOURITE].rewards - part["random"].rewards).sum(axis=1)
        cells.append(f"{gap.mean():+.1f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.1f}")
    assert f"| random | {' | '.join(cells)} |" in text
    (own,) = load_results(played.parent / "run-synthetic").records.values()
    rewards = own["greedy(model=synthetic-filter)"].rewards
    assert f"| a model of the setting | – |  |  | {rewards.mean():.3f} ± " in text
    assert (played.parent / "general.png").read_bytes().startswith(b"\x89PNG")


def test_settings_have_binary_outcomes_and_at_most_ten_entries():
    assert len(SETTINGS) == 10
    for name, env in SETTINGS.items():
        tasks = env_distribution(env.format(SHORT.get(name, 200))).sample(0, [0])
        assert str(tasks.likelihood) == "bernoulli"
        assert tasks.context_dim <= 10
        assert tasks.horizon == SHORT.get(name, 200)


def test_nobody_else_learned_from_the_settings():
    assert {*OWN} <= {*SETTINGS}
    for agent in AGENTS:
        assert "prior=fitted" not in agent
        assert "model=" not in agent or "model=untrained" in agent or "model=general" in agent


def test_an_unknown_scale_is_refused(tmp_path):
    with pytest.raises(InputError, match="unknown scale 'smal'; did you mean 'small'"):
        general(tmp_path / "out", "smal")
    assert not (tmp_path / "out").exists()
