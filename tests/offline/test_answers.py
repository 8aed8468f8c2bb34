"""Answers on logs whose truth is known, and what is said of them."""

from dataclasses import replace

import numpy as np
import pytest

from gents_gym import InputError, Logs, make_tasks
from gents_gym.offline.answers import evaluate_offline
from gents_gym.offline.config import OfflineConfig
from gents_gym.offline.overlap import Overlap
from gents_gym.offline.page import conclusions, limits, page, table_rows, warnings, write_answers
from gents_gym.offline.study import Linear, Miss, Study, make_log, run_study, summarise
from gents_gym.offline.verdicts import Answer, conclude

TASKS = make_tasks("synthetic", n_actions=4, horizon=600).sample(0, [0])
SCORES = np.random.default_rng(5).normal(size=(2, TASKS.context_dim, 4))
LOGS = make_log(TASKS, slice(0, 600), Linear(SCORES[0], 1.0, 0.7), np.random.default_rng(0))


@pytest.fixture(scope="module")
def answers():
    config = OfflineConfig(orders=2, tables=4)
    return evaluate_offline(LOGS, ["greedy", "linucb", "random"], "synthetic-filter", config)


def test_every_method_answers_for_every_agent(answers):
    found = {(answer.agent, answer.method): answer for answer in answers.answers}
    methods = {"doubly robust", "SNIPS", "replay", "IPS", "imagined", "direct"}
    assert found.keys() == {(agent, method) for agent in ("greedy", "linucb", "random") for method in methods}
    for answer in found.values():
        assert answer.low < answer.value < answer.high
        assert answer.lift_low < answer.lift < answer.lift_high
        if answer.method != "imagined":
            assert answer.lift == pytest.approx(answer.value - answers.logged.value)
    assert answers.logged.value == pytest.approx(LOGS.outcomes.mean())


def test_greedy_on_a_good_model_beats_the_log_and_random_does_not(answers):
    greedy, linucb, random = conclusions(answers)
    assert greedy.startswith("greedy would have earned more than the logged policy: +")
    assert "(doubly robust)" in greedy
    assert not random.startswith("random would have earned more")
    assert linucb


def test_the_model_imagines_the_logged_policy_as_it_was(answers):
    """Tables are drawn given the log, so what it has learned of these actions is in them."""
    gap = abs(answers.imagined_logged.value - answers.logged.value)
    assert gap < 4 * np.hypot(answers.imagined_logged.error, answers.logged.error)


def test_the_same_seed_gives_the_same_answers():
    config = OfflineConfig(orders=2, tables=0, seed=3)
    first, second = (evaluate_offline(LOGS, ["random"], None, config).answers for _ in range(2))
    assert first == second
    assert first != evaluate_offline(LOGS, ["random"], None, OfflineConfig(orders=2, tables=0, seed=4)).answers


def test_progress_counts_the_plays_of_all_agents():
    told = []
    logs = LOGS.choose(np.arange(40))
    config = OfflineConfig(orders=2, tables=2)
    evaluate_offline(logs, ["random", "linucb"], "synthetic-filter", config, on_progress=lambda *now: told.append(now))
    assert told[:2] == [("reading the log", 0), ("imagining tables", 0)]
    parts = ("order 1 of 2", "order 2 of 2", "imagined tables")
    assert [part for part, _ in told[2:]] == [
        f"{agent} plays {part}" for agent in ("random", "linucb") for part in parts
    ]
    assert [share for _, share in told[2:]] == pytest.approx([i / 6 for i in range(6)])


def test_coverage_where_the_truth_is_known():
    """The small sister of the study in docs/offline.md: intervals of fixed policies cover, and bias is small."""
    misses = run_study(Study(tasks=2, logs=12, rows=300, n_actions=3, orders=1), [])
    for method in ("IPS", "SNIPS", "doubly robust", "replay"):
        own = [miss for miss in misses if miss.method == method]
        assert len(own) == 48
        assert np.mean([abs(miss.error) <= miss.half for miss in own]) > 0.85
        errors = np.array([miss.error for miss in own])
        assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(24)  # two policies share each log
    table = summarise([Miss("a", "IPS", 0.1, 0.2), Miss("a", "IPS", -0.3, 0.2)])
    assert "| a | IPS | -0.1000 ± 0.2000 | 0.2236 | 0.2000 | 50.0 % |" in table


def test_wrong_propensities_are_noticed():
    wrong = Logs(LOGS.actions, LOGS.contexts, LOGS.outcomes, LOGS.action_features, propensities=LOGS.propensities**2)
    found = evaluate_offline(wrong, ["random"], None, OfflineConfig(orders=1))
    assert any("so the propensities cannot be right" in text for text in warnings(found))


def test_fixed_policies_watch_first_and_are_evaluated_on_the_rest():
    config = OfflineConfig(fixed=0.5, tables=4)
    found = evaluate_offline(LOGS, ["linucb"], "synthetic-filter", config)
    assert {answer.method for answer in found.answers} == {"direct", "replay", "IPS", "SNIPS", "doubly robust"}
    assert found.logged.value == pytest.approx(LOGS.outcomes[300:].mean())
    cold = evaluate_offline(LOGS, ["linucb"], "synthetic-filter", OfflineConfig(fixed=0.0))
    value = {name: {a.method: a for a in some.answers}["SNIPS"].value for name, some in (("w", found), ("c", cold))}
    assert value["w"] > value["c"]
    assert any("learn from the first 50 % of the rows" in text for text in limits(found))


def test_the_latest_rows_alone_may_be_played():
    found = evaluate_offline(LOGS, ["random"], None, OfflineConfig(last=0.25, orders=1))
    assert found.logged.value == pytest.approx(LOGS.outcomes[450:].mean())


def test_without_propensities_only_the_model_answers():
    logs = Logs(LOGS.actions, LOGS.contexts, LOGS.outcomes, LOGS.action_features)
    found = evaluate_offline(logs, ["greedy"], "synthetic-filter", OfflineConfig(tables=3))
    assert [answer.method for answer in found.answers] == ["imagined"]
    assert "(imagined, by the model alone)" in conclusions(found)[0]
    assert any("these are its opinions" in text for text in limits(found))


def test_a_report_is_one_page_and_a_table(answers, tmp_path):
    path = write_answers(answers, tmp_path / "out")
    text = path.read_text()
    assert text == page(answers)
    assert "What can be concluded" in text
    assert "<script" not in text
    assert "http://" not in text
    rows = (tmp_path / "out" / "table.csv").read_text().splitlines()
    assert len(rows) == 1 + len(answers.answers)
    shown = table_rows(answers)
    assert shown[0][:2] == ("logged policy", "mean")
    assert shown[1][:3] == ("logged policy, imagined", "imagined", f"{answers.imagined_logged.value:.4f}")
    for one in (row for row in shown[2:] if row[1] == "imagined"):
        assert float(one[2]) - float(one[4]) == pytest.approx(answers.imagined_logged.value, abs=1.1e-4)
    assert any("Agents on the model start with the model alone" in said for said in limits(answers))
    with pytest.raises(InputError, match="out must be a new or empty folder"):
        write_answers(answers, tmp_path / "out")


def test_answers_are_short_to_print_and_a_data_frame(answers):
    said = repr(answers)
    assert said.startswith("Answers(Logs(logs: 600 rows, 4 actions, 5 context entries, 2 action features, bernoulli")
    assert said.endswith("18 answers for greedy, linucb, random)")
    assert len(said) < 250
    frame = answers.to_pandas()
    assert frame[["agent", "method"]].iloc[0].tolist() == ["greedy", "doubly robust"]
    assert sorted(frame["value"]) == sorted(one.value for one in answers.answers)


def answer(low, high, method="SNIPS"):
    return Answer("mine", method, 0.5, 0.4, 0.6, (low + high) / 2, low, high, 100)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.1, 0.2, "would have earned more"), (-0.2, -0.1, "would have earned less"), (-0.1, 0.1, "cannot be told apart")],
)
def test_sentences_follow_the_interval_of_the_most_trusted_method(low, high, words):
    assert words in conclude("mine", [answer(-5, -4, "direct"), answer(low, high)], None)


def test_a_model_that_learned_from_the_rows_concludes_nothing():
    own = [answer(4, 5, "doubly robust"), answer(0.1, 0.2), answer(4, 5, "imagined"), answer(4, 5, "direct")]
    assert "(SNIPS)" in conclude("mine", own, None, trained_on=True)
    refused = conclude("mine", own, None, trained_on=True, on_model=True)
    assert refused.startswith("mine: no conclusion, because the model learned from these rows")
    assert "--last 0.2" in refused
    assert conclude("mine", own[2:], None, trained_on=True) == refused
    assert "(doubly robust)" in conclude("mine", own, None, on_model=True)


def test_little_overlap_forbids_conclusions():
    overlap = Overlap(5000, effective=12.3, largest=0.4, weight=1.0, error=0.1, accepted=7, rare=0.3)
    said = conclude("mine", [answer(0.1, 0.2)], overlap)
    assert said == "mine: no conclusion, because few rows count by effective sample size: 12 of 5000."
    assert overlap.warnings()[1:] == [
        "one row has much of all weight: 40 %",
        "replay accepted few rows: 7",
        "many plays are of actions with fewer than 20 logged rows: 30 %",
    ]


def test_equal_warnings_are_one_line(answers):
    few = Overlap(5000, effective=500.0, largest=0.01, weight=1.0, error=0.1, accepted=7, rare=0)
    overlaps = {"a": few, "b": replace(few, accepted=9.0), "c": few, "d": replace(few, accepted=1000.0)}
    assert warnings(replace(answers, overlaps=overlaps, imagined_logged=None)) == [
        "Replay accepted few rows: 7 for a, c; 9 for b."
    ]


def test_a_bundled_model_chosen_by_its_sizes_is_pointed_out():
    found = evaluate_offline(LOGS, ["greedy", "random"], None, OfflineConfig(orders=1))
    chosen = [text for text in warnings(found) if "trained on gents_gym/Synthetic-v0" in text]
    assert len(chosen) == 1
    assert chosen[0].startswith("greedy: the bundled synthetic-filter plays because its sizes fit")


@pytest.mark.parametrize("width", [1300, 390])
def test_the_page_fits_a_screen(answers, open_page, tmp_path, width):
    longest = "ts-gen(model=models/some/folder/with/a/long/name, m=64, samples=8, warm_start=True)"
    own = tuple(replace(answer, agent=f"{longest} {answer.agent}") for answer in answers.answers)
    script = "seen.over = document.documentElement.scrollWidth - document.documentElement.clientWidth;"
    text = page(replace(answers, answers=own)).replace("script-src 'none'", "script-src 'unsafe-inline'")
    _, seen = open_page(text, tmp_path, script, width=width)
    assert seen["over"] <= 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate_offline(LOGS, []), "agents must name at least one, got none"),
        (lambda: evaluate_offline(LOGS, ["linucbb"]), "unknown agent 'linucbb'"),
        (lambda: evaluate_offline(LOGS, ["oracle"]), "agent 'oracle' needs the tables of tasks, and a log has none"),
        (lambda: OfflineConfig(fixed=1.0), "fixed must be below 1"),
        (lambda: OfflineConfig(last=0.0), "last must be above 0, got 0.0"),
        (lambda: OfflineConfig(tables=1), "tables must be 0 or at least 2"),
        (
            lambda: evaluate_offline(Logs([0, 1], np.zeros((2, 1)), np.zeros(2), np.eye(2)), ["random"]),
            "a log without propensities must come with a model",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
