SMALL = ("--agent", "greedy", "--horizon", 6, "--n-actions", 3, "--tasks", 2, "--held-out", 2, "--epochs", 1)


def test_the_command_writes_a_network_that_plays(command, tmp_path, capsys):
    out = tmp_path / "net"
    assert command("distill", *SMALL, "--out", out) == 0
    shown = capsys.readouterr().out
    assert "# greedy on synthetic-filter, distilled" in shown
    agent = f"distilled(path='{out}')"
    assert f'written to {out}; play it with --agents "{agent}"' in shown
    env = ("--env", "gents_gym/Synthetic-v0(horizon=6)", "--tasks", 2, "--workers", 1)
    assert command("evaluate", "--agents", agent, *env, "--out", tmp_path / "played") == 0


def test_bad_input_is_one_line(command, tmp_path, capsys):
    assert command("distill", *SMALL, "--explore", 2, "--out", tmp_path / "out") == 2
    assert capsys.readouterr().err == "gents-gym: explore must be at most 1, got 2.0\n"
    assert not (tmp_path / "out").exists()
