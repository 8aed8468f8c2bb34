"""Files of headlines with the warts of real ones."""

import json

import pytest

from gents_gym import InputError
from gents_gym.tasks.headlines.read import read_headlines


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


MIND = (
    "N1\tsports\tsoccer\tCoach says \"no\" to 5\" heels\tAn abstract, with a comma\thttps://x/1\t[]\t[]\n"
    "N2\tnews\tus\t\t\thttps://x/2\t[]\t[]\n"
    "N3\tnews\tworld\tCafé “Zürich” reopens — finally\tb\thttps://x/3\t[]\t[]\n"
    "N4\tnews\tworld\tCAFE\u0301 “ZÜRICH”  reopens — finally\tb\thttps://x/4\t[]\t[]\n"
    "N5\ttv\tnews\t\"Unclosed quote at the start\t\thttps://x/5\t[]\t[]\n"
    "N6\ttv\tnews\tA line\u2028separator inside\t\thttps://x/6\t[]\t[]\n"
)  # fmt: skip


def test_mind_has_titles_in_column_4_and_quotes_mean_nothing(tmp_path):
    texts, counts = read_headlines(write(tmp_path, "news.tsv", MIND))
    assert texts == [
        'Coach says "no" to 5" heels',
        "Café “Zürich” reopens — finally",
        '"Unclosed quote at the start',
        "A line separator inside",
    ]
    assert counts == {"rows": 6, "empty": 1, "repeated": 1}


def test_csv_by_column_with_dates_quotes_and_line_breaks(tmp_path):
    text = (
        "\ufeffdate,headline,section\r\n"
        '2024-01-02,"He said ""stop"", twice",city\r\n'
        "2024-01-02,,city\r\n"
        "2024-01-03,Unquoted 5\" screen cracks,tech\r\n"
        '2024-01-03,"Two\nlines",tech\r\n'
        "2024-01-04,UNQUOTED 5\" Screen Cracks,tech\r\n"
        "\r\n"
    )  # fmt: skip
    texts, counts = read_headlines(write(tmp_path, "log.csv", text))
    assert texts == ['He said "stop", twice', 'Unquoted 5" screen cracks', "Two lines"]
    assert counts == {"rows": 6, "empty": 2, "repeated": 1}
    assert read_headlines(tmp_path / "log.csv", column="section")[0] == ["city", "tech"]


def test_tsv_with_a_header_is_not_mind(tmp_path):
    assert read_headlines(write(tmp_path, "a.tsv", 'title\n"A\ttab"\n5" heels\n'))[0] == ["A tab", '5" heels']
    assert read_headlines(write(tmp_path, "a.tsv", "id\ttitle\n1\tOne, two\n"))[0] == ["One, two"]


def test_json_lines(tmp_path):
    rows = [{"title": 'Ünïcode "quoted"'}, {"title": None}, {"title": ""}, {"title": 'ünïcode "QUOTED"', "x": 1}]
    path = write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    texts, counts = read_headlines(path)
    assert texts == ['Ünïcode "quoted"']
    assert counts == {"rows": 5, "empty": 3, "repeated": 1}


@pytest.mark.parametrize("name", ["Title", "HEADLINE", " title ", "headLine"])
def test_columns_match_in_any_case(tmp_path, name):
    for ending, separator in (("csv", ","), ("tsv", "\t")):
        path = write(tmp_path, f"a.{ending}", f"Id{separator}{name}\n1{separator}One\n")
        assert read_headlines(path)[0] == ["One"]
        assert read_headlines(path, column=name.strip().swapcase())[0] == ["One"]
    assert read_headlines(write(tmp_path, "a.jsonl", json.dumps({name.strip(): "One"})))[0] == ["One"]


def test_a_column_named_in_its_case_is_taken_among_others(tmp_path):
    path = write(tmp_path, "a.csv", "title,Title\none,two\n")
    assert read_headlines(path, column="title")[0] == ["one"]
    assert read_headlines(path, column="Title")[0] == ["two"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array(tmp_path, indent):
    rows = [{"id": 1, "Title": "One"}, {"Title": None}, {"Title": "Two\nlines"}, {"Title": "ONE"}]
    texts, counts = read_headlines(write(tmp_path, "a.json", "\n" + json.dumps(rows, indent=indent) + "\n"))
    assert texts == ["One", "Two lines"]
    assert counts == {"rows": 4, "empty": 1, "repeated": 1}


def test_plain_lines(tmp_path):
    assert read_headlines(write(tmp_path, "a.txt", 'One, "two"\r\n\r\n  Three\t four \n'))[0] == [
        'One, "two"',
        "Three four",
    ]
    assert read_headlines(write(tmp_path, "noending", "One\n"), format="lines")[0] == ["One"]


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.csv", "date,text\n1,x\n", {}, r"'headline' or 'title', got .* with \['date', 'text'\]: give --column"),
        ("a.csv", "date,text\n1,x\n", {"column": "texts"}, "must have a column 'texts'"),
        ("a.csv", "", {}, r"must have a column .* with \[\]"),
        ("a.csv", "date,title\n1\n", {}, "every row must have the column 'title', got 1 columns in line 2"),
        ("a.txt", b"good\nb\xe9d\n", {}, "must be UTF-8, got byte 0xe9 in line 2 of .*iconv"),
        ("a.txt", "English".encode("utf-16-le"), {}, "must be UTF-8, got byte 0x00 in line 1 of .*iconv"),
        ("a.txt", "ok\n" + "x" * 501, {}, "at most 500 characters, got 501 in line 2 of .*--max-length"),
        ("a.csv", 'title\n"' + "x" * 140_000, {}, "must be a CSV file, got .*field larger than field limit"),
        ("a.csv", 'title\n"never closed\nOne\nTwo', {}, "unexpected end of data in line 4.*or give JSON lines"),
        ("a.tsv", 'id\ttitle\n1\t"Open\n2\tOne\n3\tsaid "no"\n', {}, "in line 4.*: close quoted cells and double"),
        ("a.jsonl", '{"title": "half an emoji \\ud83d"}', {}, r"headlines must be texts, got 'half .*ud83d' in line 1"),
        ("a.jsonl", '{"title": ' + "[" * 100_000, {}, "every line must be a JSON object, got line 1 of"),
        ("a.jsonl", '{"title": 3}', {}, "headlines must be texts, got 3 in line 1"),
        ("a.jsonl", '["title"]', {}, "every entry must be a JSON object, got a str in entry 1 of"),
        ("a.jsonl", "3", {}, "every line must be a JSON object, got a int in line 1 of"),
        ("a.json", '[{"title": "a"},\n', {}, "must be one JSON array of objects, got .*line 1 column 17"),
        ("a.json", '[{"title": "a"}]\n[]', {}, "must be one JSON array of objects, got .*Extra data: line 2"),
        ("a.json", '[{"title": "a"}, {"t": 1}]', {}, r"'headline' or 'title', got entry 2 of .* with \['t'\]"),
        ("a.json", json.dumps([{"title": "x" * 501}]), {}, "at most 500 characters, got 501 in entry 1 of"),
        ("a.csv", "title,Title\n1,2\n", {}, r"one column 'title', got .* with \['title', 'Title'\]: give --column"),
        ("a.csv", "title,Title\n1,2\n", {"column": "TITLE"}, "give --column in the right case"),
        ("a.csv", "title,title\n1,2\n", {"column": "title"}, r"with \['title', 'title'\]: rename one"),
        ("a.jsonl", '{"title": "a", "TITLE": "b"}', {}, "one column 'title', got line 1 of .*: give --column"),
        ("a.jsonl", '{"title"', {}, "every line must be a JSON object, got line 1 of"),
        ("a.jsonl", '{"title": "a"}\n{"t": "b"}', {}, r"'headline' or 'title', got line 2 of .* with \['t'\]"),
        ("a.tsv", "N1\ta\tb\tc\nN2\tx\n", {}, "must have a title in column 4, got 2 columns in line 2"),
        ("a.xml", "<a/>", {}, "must be a file with an ending that is one of .csv, .*: give --format"),
        ("a.txt", "x", {"format": "cvs"}, r"unknown format 'cvs'; did you mean 'csv'\?"),
        ("a.txt", "x", {"column": "c"}, "column must be left out for the format lines, got 'c'"),
        ("a.txt", "x", {"max_length": 0}, "max_length must be at least 1, got 0"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path, name, text, options, message):
    with pytest.raises(InputError, match=message):
        read_headlines(write(tmp_path, name, text), **options)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"must be a readable file, got .*no\.txt' \(No such file"):
        read_headlines(tmp_path / "no.txt")
