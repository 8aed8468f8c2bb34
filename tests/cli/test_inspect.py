import pytest

SMALL = "gents_gym/Synthetic-v0(horizon=6, n_actions=3)"


def test_a_page_is_written_and_written_again(command, tmp_path, capsys):
    out = tmp_path / "page.html"
    words = ("inspect", "--env", SMALL, "--agent", "greedy", "--steps", 3, "--dims", 1, 3, "--out", out)
    assert command(*words) == 0
    assert "greedy played 3 decisions for a reward of" in capsys.readouterr().out
    first = out.read_bytes()
    assert b'"dims":[1,3]' in first
    assert command(*words) == 0
    assert out.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--agent", "nobody"), "unknown agent 'nobody'"),
        (("--agent", "lints"), "agent must name its model, got 'lints'"),
        (("--env", "nowhere"), "env 'nowhere' cannot be made"),
        (("--task", "-1"), "task must be at least 0, got -1"),
        (("--steps", "7"), "steps must be at most the horizon, 6, got 7"),
        (("--dims", "0", "9"), "dims must be below the context size, 5, got 9"),
    ],
)
def test_bad_input_is_one_line(command, tmp_path, capsys, words, message):
    given = dict(zip(("--env", "--agent"), (SMALL, "greedy"), strict=True)) | {words[0]: words[1:]}
    flat = [word for flag, value in given.items() for word in (flag, *([value] if isinstance(value, str) else value))]
    assert command("inspect", *flat, "--out", tmp_path / "page.html") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert message in said
    assert not list(tmp_path.iterdir())


def test_another_file_is_kept(command, tmp_path, capsys):
    out = tmp_path / "notes.txt"
    out.write_text("mine")
    assert command("inspect", "--env", SMALL, "--out", out) == 2
    assert "out must be a new file or an inspection's page" in capsys.readouterr().err
    assert out.read_text() == "mine"
