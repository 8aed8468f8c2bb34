"""What the tests of contracts share."""

import pytest

from gents_gym.testing import ContractError, check_model


@pytest.fixture
def explain():
    """A function that returns what is said of a model, which must be a whole explanation."""

    def explained(model):
        with pytest.raises(ContractError) as caught:
            check_model(model)
        lines = str(caught.value).splitlines()
        assert [line.split(":")[0].strip() for line in lines[1:]] == ["what was done", "expected", "seen", "what to do"]
        return str(caught.value)

    return explained
