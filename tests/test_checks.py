import math

import pytest

from gents_gym import InputError
from gents_gym.checks import need


def test_an_optional_module_is_there_or_told_with_its_extra():
    assert need("math", "the sum", "none") is math
    message = r"the sum needs the package 'no_such': pip install 'gents-gym\[more\]' \(No module named 'no_such'\)"
    with pytest.raises(InputError, match=message):
        need("no_such.module", "the sum", "more")
