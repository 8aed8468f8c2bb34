import numpy as np
import pyarrow as pa
import pytest

from gents_gym import Roles
from gents_gym.logs.check import check_data, explained

RNG = np.random.default_rng(0)
N = 400
CLEAN = {
    "item": np.arange(N) % 4,
    "x": RNG.normal(size=N),
    "click": RNG.integers(2, size=N),
    "p": np.full(N, 0.25),
    "u": np.arange(N),
}
ROLES = Roles("item", "click", ("x",), propensity="p")


def oddities(changes=None, roles=ROLES):
    return check_data(pa.table({**CLEAN, **(changes or {})}), roles)[1]


def test_a_clean_log_has_nothing_odd():
    has, odd, fatal = check_data(pa.table(CLEAN), ROLES)
    assert odd == fatal == []
    assert has[0].endswith(f": {N} rows")
    assert any("not used" in line and "u" in line for line in has)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros(N)}, "Column 'x' is constant, 0.0: nothing can be learned from it."),
        ({"u": np.where(np.arange(N) == 7, None, 1.0)}, "Column 'u' is constant, 1.0: nothing can be learned from it."),
        ({"x": CLEAN["click"] + 0.01 * RNG.normal(size=N)}, "Context 'x' alone explains 9"),
        ({"item": np.where(np.arange(N) < 5, 9, CLEAN["item"])}, "1 of 5 actions have fewer than 20 rows ('9' 5)."),
        ({"p": np.full(N, 0.5)}, "The propensities of 4 of 4 actions do not fit how often they were played ('0' 0.5"),
        ({"u": np.where(np.arange(N) == 7, None, 1.0)}, "Column 'u' has no value in 1 of 400 rows (row 7)."),
        ({"click": np.arange(N) % 3}, 'if they are categories, train with --likelihood "categorical(3)".'),
    ],
)
def test_what_is_odd_is_said(changes, message):
    assert any(message in line for line in oddities(changes)), oddities(changes)


def test_all_reasons_are_listed_whatever_else_is_wrong():
    """Every row lacks some value, and still each column is looked at."""
    odd = {"p": [*[2.0] * 200, *[None] * 200], "x": [*[None] * 200, *["now"] * 199, "then"], "z": np.arange(N)}
    roles = Roles("item", "clik", ("x", "u"), ("z", "zz"), time="x", propensity="p")
    fatal = check_data(pa.table({**CLEAN, **odd}), roles).fatal
    wanted = [
        "unknown column for outcome: 'clik'",
        "unknown column for action_features: 'zz'",
        "column 'x' must have one role, got time and context",
        "got none for 'x' in rows 0, 1, 2, 3, 4 and 195 more; 'p' in rows 200",
        "must lie in (0, 1], got 2 in row 0",
        "must hold numbers or dates, as 2026-01-31 12:00:00, got 'now' in row 200",
        "column 'z' of the table 'data' must be the same in every row of an action",
    ]
    assert len(fatal) == len(wanted)
    for message in wanted:
        assert any(message in fault for fault in fatal), message


def test_repeated_rows_are_counted():
    twice = {name: np.concatenate([values, values[:3]]) for name, values in CLEAN.items()}
    assert any("3 of 403 rows repeat another row" in line for line in oddities(twice))


def test_columns_alone_are_listed_without_roles():
    has, odd, _ = check_data(pa.table({**CLEAN, "x": list("ab") * 200}), Roles())
    assert [line.split()[0] for line in has[1:]] == list(CLEAN)
    assert "  x                texts, 2 distinct" in has
    assert any("'p' is constant" in line for line in odd)


def test_ids_with_leading_zeros_and_missing_values_are_listed_as_they_are(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "item,n,device,none\n" + "".join(f"{i:03},{i * 10},{('tv', 'pc', '', 'NA')[i % 4]},\n" for i in range(24))
    )
    has, odd, _ = check_data(path, Roles())
    item, n, device, none = has[1:]
    assert "texts, because of leading zeros, 24 distinct, 000 to 023" in item
    assert n.endswith("numbers, 24 distinct, 0 to 230")
    assert device.endswith("texts, 2 distinct")
    assert none.endswith("no values")
    assert any(line.startswith("Column 'device' has no value in 12 of 24 rows") for line in odd)


def test_explained_variance():
    """Against the closed form for two groups, and zero on average for noise."""
    values, outcomes = np.repeat([0.0, 1.0], 500), np.concatenate([RNG.normal(0, 1, 500), RNG.normal(2, 1, 500)])
    within = (499 * outcomes[:500].var(ddof=1) + 499 * outcomes[500:].var(ddof=1)) / 998
    assert explained(values, outcomes) == pytest.approx(1 - within / outcomes.var(ddof=1))
    noise = [explained(RNG.normal(size=200), RNG.normal(size=200)) for _ in range(200)]
    assert abs(np.mean(noise)) < 4 * np.std(noise) / np.sqrt(200)
