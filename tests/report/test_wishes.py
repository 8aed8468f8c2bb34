import pytest

from gents_gym import InputError
from gents_gym.report.wishes import read_names

AGENTS = ["linucb", "ts-gen(m=5)", "ts-gen(m=5)=x"]


def test_names_as_texts_and_as_a_mapping():
    assert read_names(["ts-gen(m=5)=TS-Gen, m = 5", "linucb=Lin  UCB"], AGENTS) == {
        "ts-gen(m=5)": "TS-Gen, m = 5",
        "linucb": "Lin UCB",
    }
    assert read_names({"linucb": "L"}, AGENTS) == {"linucb": "L"}
    assert read_names("ts-gen(m=5)=x=y", AGENTS) == {"ts-gen(m=5)=x": "y"}
    assert read_names([], AGENTS) == {}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["linucb"], "names must look like AGENT=NAME, got 'linucb'"),
        (["linucbb=a"], "unknown agent 'linucbb'; did you mean 'linucb'"),
        (["linucb= "], "names must be texts that are not empty, got ' ' for 'linucb'"),
        ({"linucb": 3}, "names must be texts that are not empty, got 3 for 'linucb'"),
    ],
)
def test_bad_names(names, message):
    with pytest.raises(InputError, match=message):
        read_names(names, AGENTS)
