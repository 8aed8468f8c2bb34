"""The report's folder, and its page in a real browser."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gents_gym import Rollout
from gents_gym.checks import InputError
from gents_gym.evaluation.grid import EvaluationConfig
from gents_gym.evaluation.harness import evaluate
from gents_gym.evaluation.store import Evaluation, load_results
from gents_gym.report import report
from gents_gym.report.report import write_report
from gents_gym.report.wishes import Wishes, apply

SMALL = "gents_gym/Synthetic-v0(horizon=12)"
AGENTS = ("random", "linucb", "lints", "oracle")
FILES = {"report.html", "table.csv", "table.md", "comparisons.csv", "files.json"} | {
    f"{name}.{form}" for name in ("regret", "distribution") for form in ("png", "svg", "pdf")
}


def page(found, wishes=report.AS_IS):
    return report.page(apply(found, wishes))


def page_data(found, wishes=report.AS_IS):
    return report.page_data(apply(found, wishes))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "out"
    evaluate(EvaluationConfig(AGENTS, (SMALL,), tasks=20, block=10), out, workers=1)
    return out


@pytest.fixture
def results(played, tmp_path):
    return shutil.copytree(played, tmp_path / "results")


@pytest.fixture
def quick(monkeypatch):
    """Fast figures that say what they show."""
    for name in ("draw_regret", "draw_distribution"):
        monkeypatch.setattr(report, name, lambda records, env, form, *_: repr((env, form, *records)).encode())


def evaluation(names, n_tasks=30, horizon=400, privileged=(), environments=("env",), regrets=("oracle", "expected")):
    """Results that no harness made: each agent is worse than the one before it."""
    rng = np.random.default_rng(0)

    def record(worse, name):
        steps = rng.gamma(0.3 * (1 + worse), size=(n_tasks, horizon))
        tasks, actions = tuple(range(n_tasks)), np.zeros((n_tasks, horizon), int)
        return Rollout(actions, 1 / (1 + steps), dict.fromkeys(regrets, steps), tasks, name in privileged, 1.0)

    run = {"seed": 0, "split": "test", "oracle": None, "versions": {"numpy": "2"}, "commit": None}
    manifest = {
        "run": run, "env": list(environments), "agents": list(names), "tasks": n_tasks,
        "weights": dict.fromkeys(names), "privileged": list(privileged),
    }  # fmt: skip
    return Evaluation(manifest, {env: {n: record(i, n) for i, n in enumerate(names)} for env in environments}, {})


# -- the folder


def test_the_folder_holds_the_page_tables_and_figures(results):
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    found = write_report(results)
    assert found == results / "report" / "report.html"
    assert {path.name for path in found.parent.iterdir()} == FILES
    assert all(path.read_bytes() == data for path, data in before.items())
    first = {name: (found.parent / name).read_bytes() for name in FILES}
    write_report(results)
    assert first == {name: (found.parent / name).read_bytes() for name in FILES}


def test_an_evaluation_goes_on_beside_its_report(results, quick):
    write_report(results)
    evaluate(EvaluationConfig((*AGENTS, "linucb(alpha=2.0)"), (SMALL,), tasks=20, block=10), results, workers=1)
    assert "linucb(alpha=2.0)" not in (results / "report" / "table.md").read_text()
    write_report(results)
    assert "linucb(alpha=2.0)" in (results / "report" / "table.md").read_text()


def test_another_folder_and_several_environments(results, quick, tmp_path):
    evaluate(EvaluationConfig(("random",), (f"{SMALL[:-3]}3)",), tasks=20, block=10), results, workers=1)
    folder = write_report(results, tmp_path / "elsewhere" / "new").parent
    assert folder == tmp_path / "elsewhere" / "new"
    assert len(list(folder.glob("regret-*.png"))) == len(list(folder.glob("distribution-*.svg"))) == 2
    assert (folder / "table.md").read_text().count("###") == 2


def test_files_of_others_are_never_touched(results, quick):
    (results / "report").mkdir()
    for name in ("table.md", "notes.txt"):
        path = results / "report" / name
        path.write_text("mine")
        with pytest.raises(InputError, match=f"{name}' is damaged or not of a report: move it away"):
            write_report(results)
        assert path.read_text() == "mine"
        path.unlink()
    page = write_report(results)
    page.write_text(page.read_text() + "<!-- by hand -->")
    with pytest.raises(InputError, match=r"report.html' is damaged or not of a report"):
        write_report(results)


def test_a_refused_folder_keeps_its_parts(results, quick):
    (results / "report").mkdir()
    for name in (".x.abc.gents_gym.part", ".film.mkv.part"):
        (results / "report" / name).touch()
    with pytest.raises(InputError, match=r"film.mkv.part' is damaged or not of a report"):
        write_report(results)
    assert len(list((results / "report").iterdir())) == 2
    (results / "report" / ".film.mkv.part").unlink()
    assert {path.name for path in write_report(results).parent.iterdir()} == FILES


@pytest.mark.parametrize("place", ["", "more", "cells", "report/more", "report/../more"])
def test_a_report_does_not_go_between_the_results(results, quick, place):
    before = sorted(results.rglob("*"))
    with pytest.raises(InputError, match=r"to must be '.*report' or lie outside the evaluation's folder, got"):
        write_report(results, results / place)
    assert sorted(results.rglob("*")) == before
    write_report(results, results / "cells" / ".." / "report")


def test_a_killed_report_is_written_again(results, quick, monkeypatch):
    write_report(results)
    whole = {path.name: path.read_bytes() for path in (results / "report").iterdir()}
    evaluate(EvaluationConfig(("linucb(alpha=2.0)",), (SMALL,), tasks=20, block=10), results, workers=1)
    write, written = report.write_whole, []

    def stop(path, data):
        written.append(path.name)
        if len(written) == 4:
            raise KeyboardInterrupt
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(report, "write_whole", stop)
        with pytest.raises(KeyboardInterrupt):
            write_report(results)
    now = {path.name: path.read_bytes() for path in (results / "report").iterdir()}
    assert now["report.html"] != whole["report.html"]
    assert now["regret.png"] == whole["regret.png"]
    write_report(results)
    again = {path.name: path.read_bytes() for path in (results / "report").iterdir()}
    assert again.keys() == whole.keys()
    assert again["report.html"] == now["report.html"]
    write_report(results, results.parent / "elsewhere")
    assert again == {path.name: path.read_bytes() for path in (results.parent / "elsewhere").iterdir()}


def test_unfinished_agents_are_named(results, quick):
    for path in (results / "cells").glob("*--lints--000010-*"):
        path.unlink()
    text = write_report(results).read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert data["missing"] == [f"lints in {SMALL}"]
    assert [row["agent"] for row in data["environments"][0]["rows"]] == ["random", "linucb", "oracle"]


def test_bad_folders(results, quick, tmp_path):
    with pytest.raises(InputError, match=r"out must be the folder of an evaluation, .* got '.*nowhere'"):
        write_report(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file' cannot be written \(File exists\)"):
        write_report(results, tmp_path / "file")
    for path in (results / "cells").glob("*--000010-*"):
        path.unlink()
    with pytest.raises(InputError, match="out must hold an agent that has played all its tasks"):
        write_report(results)


def test_damaged_results_are_told_by_name(results):
    path = next((results / "cells").iterdir())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=f"{re.escape(path.name)}' is damaged"):
        write_report(results)
    assert not (results / "report").exists()


# -- the page


def test_the_page_needs_no_network(results):
    text = page(load_results(results))
    assert set(re.findall(r"https?://[^\s\"'`;]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bsrc=|@import|url\(|fetch\(", text)
    assert "default-src 'none'" in text


def test_the_page_stays_small():
    names = [f"package.module:Agent(option={i}, other='something')" for i in range(15)]
    text = page(evaluation(names, 500, 500, regrets=("oracle", "expected", "best")))
    assert len(text.encode()) < 1_000_000


def test_numbers_that_there_are_not_are_null():
    text = page(evaluation(["a", "b"], n_tasks=1))
    assert "NaN" not in re.search(r'id="data">(.*?)</script>', text)[1]


def test_shorter_episodes_stay_where_they_ended():
    found = evaluation(["a", "b"], n_tasks=2, horizon=30)
    (records,) = found.records.values()
    short = records["b"]
    records["b"] = replace(short, actions=short.actions[:, :10], rewards=short.rewards[:, :10],
                           regret={name: steps[:, :10] for name, steps in short.regret.items()})  # fmt: skip
    (shown,) = page_data(found)["environments"]
    assert shown["steps"].tolist() == list(range(1, 31))
    ends = shown["curves"]["reward"][1]["y"]
    np.testing.assert_allclose(ends[10:], ends[9])


def assert_well(dom):
    assert "data-error" not in dom, re.search('data-error="([^"]*)"', dom)[1]
    assert 'data-ready="yes"' in dom


LOOK = """
const all = (q) => [...document.querySelectorAll(q)];
const texts = (q) => all(q).map((e) => e.textContent);
const look = (name) => { seen[name] = {
  curves: all('#curves .curve').length, bands: all('#curves .band').length, steps: all('#distribution .curve').length,
  rows: texts('#table tbody th'), cells: texts('#table tbody td.chosen'), forest: texts('#forest tbody th'),
  badges: texts('#forest .badge'), matrix: all('#matrix tbody td').map((e) => e.className),
  headline: texts('#headline')[0], title: texts('#curves-title')[0], address: location.hash,
  points: all('#curves .curve').map((e) => e.points.length), chips: texts('#agents button'),
  ends: texts('#curves text.end').map((t) => t.slice(0, t.length / 2)),
  lifts: all('#table tbody tr').map((e) => e.cells[e.cells.length - 2].firstChild.textContent),
  heads: texts('#table thead th'),
}; };
const click = (id) => document.getElementById(id).click();
"""


def test_the_page_in_a_browser(open_page, results, tmp_path):
    found = load_results(results)
    script = f"""{LOOK}
look('start');
click('agent-0'); look('without random');
click('agent-0'); click('sort-q90'); look('by tail');
click('sort-q90'); look('by tail, turned');
click('measure-reward'); look('reward');
const select = document.getElementById('reference'); select.value = '0'; select.dispatchEvent(new Event('change'));
click('measure-oracle'); look('against random');
const svg = document.querySelector('#curves svg');
const box = document.querySelector('#curves .curve').getBoundingClientRect();
svg.dispatchEvent(new PointerEvent('pointermove', {{clientX: box.right, clientY: box.top + 50}}));
seen.tip = texts('#curves .tip td'); seen.tipTitle = texts('#curves .tip b')[0];
"""
    dom, seen = open_page(page(found), tmp_path, script)
    assert_well(dom)
    records = found.records[SMALL]
    totals = {name: record.regret["expected"].sum(axis=1) for name, record in records.items()}
    label = {name: f"{name} (privileged)" if name == "oracle" else name for name in AGENTS}

    start = seen["start"]
    assert (start["curves"], start["bands"], start["steps"]) == (4, 4, 4)
    assert start["points"] == [12] * 4
    by_mean = sorted(AGENTS, key=lambda name: totals[name].mean())
    assert start["rows"] == [label[name] for name in by_mean]
    shown = [
        f"{t.mean():.2f} ± {stats.sem(t):.2f}|{np.median(t):.2f}|{np.quantile(t, 0.9):.2f}|{np.quantile(t, 0.99):.2f}"
        for t in (totals[name] for name in by_mean)
    ]
    assert start["cells"] == "|".join(shown).replace("-", "−").split("|")
    assert start["chips"] == by_mean[::-1]  # as the curves end, from top to bottom
    assert start["ends"] == [label[name] for name in by_mean[::-1]]
    earned = {name: record.rewards.mean(axis=1) for name, record in records.items()}
    ratio = {name: earned[name].mean() / earned["random"].mean() - 1 for name in AGENTS}
    assert start["lifts"] == [
        f"{100 * ratio[name]:+.1f} %".replace("+0.0", "0.0").replace("-", "−") for name in by_mean
    ]
    best = next(name for name in by_mean if name != "oracle")
    assert start["headline"].startswith(f"{best} has the lowest mean expected regret, {totals[best].mean():.2f} ± ")
    assert start["forest"] == [label[name] for name in by_mean if name != best]

    def side(one, other):
        test = stats.ttest_rel(totals[one], totals[other])
        return 0 if one == other or test.pvalue > 0.05 else int(np.sign(test.statistic))

    words = {-1: "beats", 0: "no difference shown", 1: "loses to"}
    assert start["badges"] == [words[side(name, best)] for name in by_mean if name != best]
    kinds = {-1: "win", 0: "even", 1: "lose"}
    assert start["matrix"] == [kinds[side(one, other)] for one in by_mean for other in by_mean]
    assert set(start["matrix"]) == set(kinds.values())

    without = seen["without random"]
    assert (without["curves"], without["steps"], len(without["matrix"])) == (3, 3, 9)
    assert "random" not in without["rows"]
    assert "hide=0" in without["address"]
    by_tail = [label[n] for n in sorted(AGENTS, key=lambda name: np.quantile(totals[name], 0.9))]
    assert seen["by tail"]["rows"] == by_tail
    assert seen["by tail, turned"]["rows"] == by_tail[::-1]
    assert seen["reward"]["title"] == "Cumulative reward"
    assert seen["reward"]["headline"].startswith(f"{best} has the highest mean reward")
    assert seen["reward"]["heads"][3:5] == ["10\u00a0%", "1\u00a0%†"]  # the bad tail of a reward is the low one
    lowest = [np.quantile(records[name].rewards.sum(axis=1), 0.1) for name in by_mean]
    assert {f"{value:.2f}" for value in lowest} <= set(seen["reward"]["cells"])

    against = seen["against random"]
    realised = {name: record.regret["oracle"].sum(axis=1) for name, record in records.items()}
    assert against["forest"] == [label[n] for n in sorted(AGENTS, key=lambda n: realised[n].mean()) if n != "random"]
    assert seen["tipTitle"] == "decision 12"
    top = max(AGENTS, key=lambda name: realised[name].mean())
    assert seen["tip"][1:3] == [top, f"{realised[top].mean():.2f} ± {stats.sem(realised[top]):.2f}"]
    assert found.manifest["run"]["commit"] in dom


def test_the_address_tells_what_is_shown(open_page, tmp_path):
    found = evaluation(["a", "b", "c"], environments=("one", "two"), privileged=("a",))
    address = "#env=1&measure=oracle&hide=1&sort=-median&ref=2"
    dom, seen = open_page(page(found), tmp_path, f"{LOOK} look('start')", address)
    assert_well(dom)
    start = seen["start"]
    assert (start["curves"], start["rows"]) == (2, ["c", "a (privileged)"])
    assert start["points"] == [200, 200]
    assert start["title"] == "Cumulative oracle regret"
    assert start["forest"] == ["a (privileged)"]
    assert start["headline"].startswith("b has the lowest")


def test_names_are_text(open_page, tmp_path):
    names = ["</script><script>document.title='bad'</script>", "<b onclick='x'>\"&amp;", "ü☃\u2028@data@", "\\u003c"]
    dom, seen = open_page(page(evaluation(names, environments=names[:1])), tmp_path, f"{LOOK} look('start')")
    assert_well(dom)
    assert seen["start"]["rows"] == names
    assert "<title>bad</title>" not in dom
    assert "<b onclick" not in dom


def test_the_least_there_can_be(open_page, tmp_path):
    found = evaluation(["a"], n_tasks=1, horizon=1, regrets=())
    dom, seen = open_page(page(found), tmp_path, f"{LOOK} look('start'); click('agent-0'); look('none')")
    assert_well(dom)
    assert seen["start"]["rows"] == ["a"]
    assert (seen["start"]["bands"], seen["none"]["curves"], seen["none"]["rows"]) == (0, 0, [])
    assert "NaN" not in dom


def test_long_names_leave_room_for_provenance_on_a_phone(open_page, tmp_path):
    found = evaluation(["a"])
    resolved = {"gents_gym/Synthetic-v0(horizon=100, n_actions=25)": {"a": "logistic"}}
    found = replace(found, manifest={**found.manifest, "resolved": resolved})
    script = "const t = document.getElementById('provenance'); seen.over = t.offsetWidth - t.parentElement.clientWidth;"
    script += "seen.heights = [...t.rows].map((row) => row.offsetHeight);"
    dom, seen = open_page(page(found), tmp_path, script, width=400)
    assert_well(dom)
    assert seen["over"] <= 0
    assert max(seen["heights"]) < 150


LONG = [f"package.module:Agent(model=synthetic-filter-{i}, policy=least-squares, samples={i})" for i in range(9)]
OVER = """
const limit = document.documentElement.clientWidth;
seen.over = [...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth - e.clientWidth);
seen.page = document.documentElement.scrollWidth - limit;
const boxes = [...document.querySelectorAll('#curves text.end')].map((e) => e.getBoundingClientRect());
seen.outside = boxes.filter((box) => box.right > limit || box.left < 0).length;
seen.ends = boxes.length;
const meet = (a, b) => a.top < b.bottom - 2 && b.top < a.bottom - 2;
seen.overlap = boxes.filter((a, i) => boxes.some((b, j) => j < i && meet(a, b))).length;
seen.legend = document.querySelectorAll('#curves .legend .name').length;
"""


@pytest.mark.parametrize(("width", "named"), [(1300, 9), (500, 0)])
def test_long_names_wrap_and_nothing_falls_off_the_edge(open_page, tmp_path, width, named):
    found = evaluation(LONG, horizon=400, regrets=("oracle", "expected", "best"))
    dom, seen = open_page(page(found), tmp_path, OVER, width=width)
    assert_well(dom)
    assert (seen["page"], seen["outside"], seen["overlap"]) == (0, 0, 0)
    assert (seen["ends"], seen["legend"]) == (named, 9 - named)
    if width == 1300:
        assert max(seen["over"]) <= 0


def test_titles_and_names_of_agents_are_shown_as_text(open_page, tmp_path):
    bad = "<img src=x onerror=document.title='bad'>"
    wishes = Wishes(bad, {"a": f"A {bad}"}, only=("b", "a"), baseline="a")
    shown = f"{LOOK} look('start'); seen.title = texts('h1')[0]; seen.base = document.getElementById('baseline').value"
    dom, seen = open_page(page(evaluation(["a", "b", "c"]), wishes), tmp_path, shown)
    assert_well(dom)
    assert seen["title"] == bad
    assert seen["start"]["rows"] == [f"A {bad}", "b"]
    assert seen["base"] == "1"
    assert "<img" not in dom
    assert "<title>bad</title>" not in dom
    assert "<title>&lt;img" in dom


def test_wishes_show_in_all_files(results, quick):
    names = {"linucb": "Lin_UCB", "lints": "Thompson"}
    folder = write_report(results, wishes=Wishes("My *title*", names, ("lints", "linucb"), "lints")).parent
    table = (folder / "table.md").read_text()
    assert table.startswith("# My \\*title\\*\n")
    assert "lift over Thompson" in table
    assert "Lin\\_UCB" in table
    assert "random" not in table
    csv = (folder / "table.csv").read_text().splitlines()
    assert [line.split(",")[1:2] + line.split(",")[-1:] for line in csv[1:]] == [
        ["Thompson", "lints"],
        ["Lin_UCB", "linucb"],
    ]
    assert "Lin_UCB" in (folder / "comparisons.csv").read_text()
    assert (folder / "regret.png").read_bytes() == repr(("My *title*", "png", "Thompson", "Lin_UCB")).encode()


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        (Wishes(title=" "), "title must be a text that is not empty, got ' '"),
        (Wishes(names={"linucb": "lints"}), "names must differ from each other, got 'lints' for two agents"),
        (Wishes(only=("linucbb",)), "unknown agent 'linucbb'; did you mean 'linucb'"),
        (Wishes(baseline="nope"), "unknown baseline 'nope'"),
        (Wishes(regrets=("bst",)), "unknown regret 'bst'; did you mean 'best'"),
    ],
)
def test_wishes_that_cannot_be_met(results, wishes, message):
    with pytest.raises(InputError, match=message):
        write_report(results, wishes=wishes)
    assert not (results / "report").exists()


def test_a_script_that_fails_says_so(open_page, tmp_path):
    text = page(evaluation(["a"])).replace("drawProvenance();\nrender();", "nowhere();")
    dom, _ = open_page(text, tmp_path)
    assert "This page's script failed: Uncaught ReferenceError: nowhere is not defined" in dom
    with pytest.raises(AssertionError, match="nowhere is not defined"):
        assert_well(dom)


def beaten(names):
    """Results in which the first agent beats the oracle."""
    found = evaluation(names, regrets=("oracle", "expected", "best"))
    records = found.records["env"]
    first = records[names[0]]
    lower = {**first.regret, **dict.fromkeys(("oracle", "expected"), first.regret["best"] - 1)}
    return replace(found, records={"env": {**records, names[0]: replace(first, regret=lower)}})


def test_a_poor_yardstick_is_told_on_the_page():
    (shown,) = page_data(beaten(["a", "b"]))["environments"]
    assert shown["yardstick"].startswith("The oracle is a poor yardstick here: its own best regret is 400.0 per task")
    assert shown["measures"][0] == "best"
    (other,) = page_data(evaluation(["a", "b"]))["environments"]
    assert other["yardstick"] is None


def test_the_page_leads_with_best_regret_where_the_oracle_is_beaten(open_page, tmp_path):
    look = f"{LOOK} look('start'); seen.told = texts('#yardstick')[0]; seen.hidden = all('#yardstick')[0].hidden"
    dom, seen = open_page(page(beaten(["a", "b"])), tmp_path, f"{look}; click('agent-0'); look('then')")
    assert_well(dom)
    assert seen["start"]["title"] == "Cumulative best regret"
    assert seen["told"].startswith("The oracle is a poor yardstick")
    assert not seen["hidden"]
    assert "measure=best" in seen["then"]["address"]
    dom, seen = open_page(page(evaluation(["a", "b"])), tmp_path, look)
    assert (seen["start"]["title"], seen["hidden"]) == ("Cumulative expected regret", True)
