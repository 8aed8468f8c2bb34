"""What holds for all tests: nothing is left behind in the system's folder for temporary files."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def sb3_logs(tmp_path_factory):
    """Let stable-baselines3, which opens a folder per model, write where pytest cleans up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield
