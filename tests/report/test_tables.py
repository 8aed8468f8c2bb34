import io

import numpy as np
import pandas as pd
from scipy import stats

from gents_gym import Rollout
from gents_gym.report.analysis import summary_rows
from gents_gym.report.tables import to_csv, to_markdown


def record(seed, **given):
    rng = np.random.default_rng(seed)
    steps = {name: rng.normal(1, 1, size=(40, 30)) for name in ("oracle", "expected", "best")}
    return Rollout(np.zeros((40, 30), int), rng.random((40, 30)), steps, **given)


def test_csv_reads_back():
    rows = summary_rows("env", {'a,"b"\n': record(0, seconds=1.0), "c": record(1)})
    read = pd.read_csv(io.StringIO(to_csv(rows)))
    assert list(read.columns) == list(rows[0])
    assert read["agent"].tolist() == ['a,"b"\n', "c"]
    assert read["best_q99"].tolist() == [row["best_q99"] for row in rows]
    assert np.isnan(read["ms_per_decision"][1])


def test_csv_has_every_rows_columns():
    assert to_csv([{"a": 1}, {"b": 2.5}]) == "a,b\n1,\n,2.5\n"


def test_markdown_is_a_table():
    records = {"a|b": record(0, seconds=1.2), "*c*\n<d>": record(1, privileged=True)}
    lines = to_markdown("my_env", records).splitlines()
    assert lines[0] == "### my\\_env"
    rows = [line for line in lines if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in rows} == {21}
    assert rows[2].startswith(r"| a\|b | 40 | ")
    assert rows[3].startswith(r"| \*c\* \<d\> (privileged) | 40 | ")
    sums = records["a|b"].regret["oracle"].sum(axis=1)
    assert f"| {sums.mean():.2f} ± {stats.sem(sums):.2f} | {np.median(sums):.2f} |" in rows[2]
    assert rows[2].endswith("| 1.0000 |")
    assert rows[3].endswith("| – |")
    assert "99 %†" in rows[0]
    assert "| reward | median | 10 % | 1 %† | reward / decision | ms / decision |" in rows[0]
    low = np.quantile(records["a|b"].rewards.sum(axis=1), 0.1)
    assert f"| {low:.2f} |" in rows[2]
    assert "† of 40 tasks, the 99 % quantile is nearly the maximum." in lines[-1]
    assert "† of 40 tasks, the 1 % quantile is nearly the minimum." in lines[-1]


def test_markdown_has_the_lift_over_a_baseline():
    records = {"a": record(0), "b_c": record(1)}
    rows = to_markdown("env", records, "b_c").splitlines()
    assert "| lift over b\\_c |" in rows[2]
    gain = 100 * (records["a"].rewards.mean() / records["b_c"].rewards.mean() - 1)
    assert f"| {gain:.1f} ± " in rows[4]
    assert "| 0.0 ± 0.0 % |" in rows[5]
