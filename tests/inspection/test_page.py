import json
import re
from dataclasses import replace

import numpy as np
import pytest

from gents_gym.checks import InputError
from gents_gym.inspection.page import check_page, page, page_data, write_page
from gents_gym.inspection.reasons import Reason
from gents_gym.inspection.record import inspect_task

SMALL = "gents_gym/Synthetic-v0(horizon=20, n_actions=4)"
LOOK = """
const all = (q) => [...document.querySelectorAll(q)];
const texts = (q) => all(q).map((e) => e.textContent);
const look = (name) => { seen[name] = {
  where: texts('#where')[0], slider: Number(document.getElementById('slider').value), address: location.hash,
  headline: texts('#headline')[0], seen: texts('#table td.seen'), imputed: all('#table td.imputed').length,
  empty: all('#table td.empty').length, now: texts('#table tr.now td'),
  played: all('#table td.played').map((e) => e.cellIndex - 2), values: texts('#predicted .value'),
  why: texts('#why .value'), spans: all('#predicted .span').length, truth: all('#predicted .truth').length,
  past: all('#map .past').length, cells: all('#map .mapcell').length, map: texts('#map-title')[0] }; };
const press = (key) => window.dispatchEvent(new KeyboardEvent('keydown', { key }));
const click = (id) => document.getElementById(id).click();
const over = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
"""


@pytest.fixture(scope="module")
def found():
    return inspect_task(SMALL, "ts-gen(m=6)", steps=18, truth=True)


def test_the_page_holds_what_was_recorded(found):
    text = page(found)
    data = json.loads(re.search('id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["actions"] == found.actions.tolist()
    assert data["steps"][-1]["first"] == 2
    assert len(data["steps"][-1]["draws"][0]) == (20 - 2) * 4
    assert data["steps"][3]["own"].count(None) > 0
    assert data["steps"][3]["expected"] == pytest.approx(found.steps[3].expected, abs=1e-4)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_truth_is_on_the_page_only_if_asked_for(found):
    assert page_data(found)["truth"]["outcomes"].tolist() == found.tasks.outcomes[0, :18].tolist()
    hidden = page_data(replace(found, truth=False))
    assert "truth" not in hidden
    assert "true" not in json.dumps(list(hidden))


def test_a_page_of_the_usual_size_stays_small():
    assert len(page(inspect_task(steps=40))) < 500_000


def test_only_pages_of_inspections_are_replaced(found, tmp_path):
    out = write_page(found, tmp_path / "page.html")
    before = out.read_bytes()
    assert write_page(found, out).read_bytes() == before
    other = tmp_path / "other.html"
    other.write_text("<html>mine</html>")
    for path, message in [
        (other, "out must be a new file or an inspection's page"),
        (tmp_path, "must be a regular file"),
        (tmp_path / "none" / "page.html", "out must lie in a folder that exists"),
    ]:
        with pytest.raises(InputError, match=message):
            check_page(path)
    assert other.read_text() == "<html>mine</html>"


def test_stepping_through_in_a_browser(open_page, found, tmp_path):
    script = f"""{LOOK} look('start');
press('ArrowRight'); press('ArrowRight'); look('third');
press('d'); look('drawn'); press('ArrowLeft'); look('second');
press('End'); look('end'); press('ArrowRight'); look('still'); press('PageUp'); look('ten back');
click('first'); click('next'); look('clicked'); click('map-best'); look('best');
const slider = document.getElementById('slider'); slider.value = 5;
slider.dispatchEvent(new Event('input')); look('slid'); seen.over = over();
"""
    dom, seen = open_page(page(found), tmp_path, script)
    assert "data-error" not in dom
    assert 'data-ready="yes"' in dom
    start, third, end = seen["start"], seen["third"], seen["end"]
    assert start["where"] == "Decision 1 of 18"
    assert (start["seen"], start["past"], start["played"]) == ([], 0, [found.actions[0]])
    assert start["headline"].startswith(f"Plays action {found.actions[0]}: the policy fitted to the drawn table scores")
    assert start["map"] == "The fitted policy"
    assert third["where"] == "Decision 3 of 18"
    assert third["seen"] == [f"{outcome:g}" for outcome in found.outcomes[:2]]
    assert (third["imputed"], third["past"], third["spans"], third["truth"]) == (11 * 4 - 2, 2, 12, 4)
    assert third["values"] == [f"{value:.2f}" for value in found.steps[2].expected]
    assert third["why"] == [f"{value:.2f}".replace("-", "−") for value in found.steps[2].reason.scores]
    assert "draw=own" in seen["drawn"]["address"]
    assert seen["drawn"]["empty"] == 2 * 4 - 2 + 3 * 4  # earlier missing cells, and rows behind the truncated table
    assert [text[0] for text in seen["drawn"]["now"]] == [f"{value:g}" for value in found.steps[2].own[2]]
    assert seen["second"]["where"] == "Decision 2 of 18"
    assert end["where"] == seen["still"]["where"] == "Decision 18 of 18"
    assert seen["ten back"]["slider"] == 8
    assert (seen["clicked"]["slider"], seen["slid"]["where"]) == (2, "Decision 5 of 18")
    assert seen["best"]["map"] == "The best prediction"
    assert seen["over"] == 0
    assert "NaN" not in dom


def test_the_address_and_a_narrow_screen(open_page, tmp_path):
    bad = "</script><img src=x onerror=document.title='bad'>"
    played = inspect_task("gents_gym/News-v0(horizon=8)", "gen-kg", steps=3)
    texts = [[bad, *list(played.info.texts[0])[1:]]]
    text = page(replace(played, info=replace(played.info, texts=texts)))
    frame = "seen.names = texts('#names li'); seen.over = over(); seen.keys = texts('#keys')[0]"
    dom, seen = open_page(text, tmp_path, f"{LOOK} look('start'); {frame}", "#t=3&draw=2&map=nonsense", width=390)
    assert "data-error" not in dom
    assert seen["start"]["where"] == "Decision 3 of 3"
    assert seen["start"]["map"] == "The best prediction"
    assert seen["names"][0] == f"0: {bad}"
    assert "<img" not in dom
    assert "step" in seen["keys"]
    assert seen["over"] <= 0


def test_the_least_there_can_be(open_page, tmp_path):
    played = inspect_task("gents_gym/Bernoulli-v0(horizon=1, n_actions=2)", "greedy(model=untrained)", draws=1)
    played = replace(played, steps=[replace(played.steps[0], reason=Reason(), interval=None)])
    dom, seen = open_page(page(played), tmp_path, f"{LOOK} look('start'); press('ArrowRight'); look('still')")
    assert "data-error" not in dom
    assert seen["still"]["where"] == "Decision 1 of 1"
    assert (seen["start"]["cells"], seen["start"]["why"], seen["start"]["imputed"]) == (0, [], 2)
    assert seen["start"]["spans"] == 0
    assert "NaN" not in dom


def test_shades_of_gaussian_outcomes_span_the_middle_of_what_is_shown(open_page, tmp_path):
    played = inspect_task("gents_gym/Synthetic-v0(outcomes=gaussian, horizon=20, n_actions=4)", "greedy", steps=18)
    means = np.concatenate([step.draws.mean(axis=0).ravel() for step in played.steps])
    low, high = np.quantile(means, [0.05, 0.95])
    script = r"""seen.legend = texts('#cells')[0];
const shade_of = (e) => Number(/([\d.]+)\)$/.exec(e.style.background)[1]);
seen.shades = all('#table td.imputed').map((e) => [e.textContent, shade_of(e)]);"""
    dom, seen = open_page(page(played), tmp_path, f"{LOOK} {script}", "#t=12")
    assert "data-error" not in dom
    ends = [float(text.replace("−", "-")) for text in re.findall(r"[−\d.]+(?= or )", seen["legend"])]
    assert ends == pytest.approx([low, high], abs=0.15)
    values, shades = np.array([[float(text.replace("−", "-")), shade] for text, shade in seen["shades"]]).T
    expected = 0.04 + 0.76 * np.clip((values - low) / (high - low), 0, 1)
    np.testing.assert_allclose(shades, expected, atol=0.03)
    assert np.ptp(shades) > 0.6
