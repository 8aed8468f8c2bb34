SMALL = ("--horizon", 6, "--n-actions", 3, "--tasks", 4, "--block", 2, "--workers", 1, "--candidates", "greedy")


def test_the_command_prints_the_evidence_and_writes_the_choice(command, tmp_path, capsys):
    assert command("tune", *SMALL, "softmax(temperature=9.0)", "--contexts", 0, "--out", tmp_path) == 0
    shown = capsys.readouterr().out
    assert "synthetic-filter, imagined tasks of 3 actions, 6 decisions, contexts 0.0" in shown
    assert f"chosen: greedy; written to {tmp_path / 'tuned.json'}" in shown
    assert "softmax(temperature=9.0)" in shown


def test_bad_input_is_one_line(command, tmp_path, capsys):
    assert command("tune", "--out", tmp_path / "out") == 2
    message = "gents-gym: horizon must be given (--horizon), or known from an environment (--env), got none\n"
    assert capsys.readouterr().err == message
    assert not (tmp_path / "out").exists()
