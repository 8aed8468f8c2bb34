import math
import pickle

import pytest

from gents_gym import InputError
from gents_gym.checks import (
    InputTypeError,
    check_actions,
    check_array,
    check_choice,
    check_flag,
    check_integer,
    check_memory,
    check_number,
    check_option,
    check_type,
    machine_memory,
    need,
)


def test_sizes_must_fit_into_the_memory_that_there_is():
    with open("/proc/meminfo") as file:
        total = 1024 * int(next(line for line in file if line.startswith("MemTotal")).split()[1])
    assert 0 < machine_memory() <= 1.01 * total
    check_memory(int(machine_memory()), rows=3)
    with pytest.raises(InputError, match=r"rows=3, width=2 must fit into this machine's \d+ .B of memory, got sizes"):
        check_memory(int(machine_memory()) + 1, rows=3, width=2)
    with pytest.raises(InputError, match="that take 1000 YB or more"):
        check_memory(10**400, rows=3)


def test_an_optional_module_is_there_or_told_with_its_extra():
    assert need("math", "the sum", "none") is math
    message = r"the sum needs the package 'no_such': pip install 'gents-gym\[more\]' \(No module named 'no_such'\)"
    with pytest.raises(InputError, match=message):
        need("no_such.module", "the sum", "more")


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_integer("n", "3", 0),
        lambda: check_number("x", None),
        lambda: check_flag("f", 1),
        lambda: check_array("a", object(), "(B,)", (-1,)),
        lambda: check_actions([0.5], 1, 2),
        lambda: check_option("agent 'a'", "alhpa", ["alpha"]),
    ],
)
def test_wrong_types_and_unknown_keywords_are_type_errors_too(call):
    with pytest.raises(InputTypeError) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    again = pickle.loads(pickle.dumps(caught.value))  # workers send errors back
    assert str(again) == str(caught.value)


def test_long_values_are_not_shown():
    with pytest.raises(InputTypeError, match=r"^n must be a str, got \[0, 1\]$"):
        check_type("n", [0, 1], str)
    with pytest.raises(InputTypeError, match=r"^n must be a str, got an object of list$"):
        check_type("n", list(range(1000)), str)


def test_wrong_values_are_no_type_errors():
    for call in (lambda: check_integer("n", -1, 0), lambda: check_choice("split", "tset", ["test"])):
        with pytest.raises(InputError) as caught:
            call()
        assert not isinstance(caught.value, TypeError)


def test_unknown_keywords_have_pythons_words():
    with pytest.raises(TypeError, match=r"agent 'a': unexpected keyword argument 'alhpa'; did you mean 'alpha'\?"):
        check_option("agent 'a'", "alhpa", ["alpha"])
