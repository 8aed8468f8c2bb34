"""The command ``gents-gym data check``."""

import numpy as np


def test_data_check_says_what_is_there_and_what_is_odd(capsys, tmp_path, command):
    path = tmp_path / "site.csv"
    rng = np.random.default_rng(0)
    rows = [f"i{k % 3},{rng.normal():.3f},{rng.integers(2)},7\n" for k in range(90)]
    path.write_text("item,u1,click,site\n" + "".join(rows))
    assert command("data", "check", path, "--action", "item", "--outcome", "click", "--context", "u1", "site") == 0
    shown = capsys.readouterr().out
    assert "action           item: 3 actions" in shown
    assert "Column 'site' is constant, 7" in shown
    assert command("data", "check", path) == 0
    assert "no roles are given" in capsys.readouterr().out
    path.write_text(path.read_text() + "i1,,1,7\ni2,1,often,7\n")
    roles = ("--action", "item", "--outcome", "click", "--context", "u1", "u9", "--time", "site")
    assert command("data", "check", path, *roles) == 2
    shown = capsys.readouterr().out.partition("The log cannot be used as it is:\n")[2].splitlines()
    wanted = ("unknown column for context: 'u9'", "got none for 'u1' in line 92", "got 'often' in line 93")
    assert len(shown) == 3
    assert all(message in line for message, line in zip(wanted, shown, strict=True))
    for words, message in (((tmp_path / "none.csv",), "data must be a Parquet or CSV file"), ((), "required")):
        assert command("data", "check", *words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
    assert list(tmp_path.iterdir()) == [path]
