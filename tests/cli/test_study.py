def test_regimes_are_of_some_studies(command, tmp_path, capsys):
    assert command("study", "bake-off", "--regimes", "iris", "--out", tmp_path / "out") == 2
    message = (
        "gents-gym: regimes must go with one of the studies imagined, planning, settings, got --regimes with bake-off\n"
    )
    assert capsys.readouterr().err == message
    assert command("study", "planning", "--regimes", "synthetic-2-500", "--out", tmp_path / "out") == 2
    assert "unknown regime 'synthetic-2-500'; did you mean" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
