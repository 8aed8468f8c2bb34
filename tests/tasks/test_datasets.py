"""Tables from scikit-learn, files and OpenML, and one line for each that cannot be used."""

from urllib.error import URLError

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import datasets
from sklearn.utils import Bunch

from gents_gym import InputError
from gents_gym.tasks.datasets import BUNDLED, Table, find_classes, load_table

ROWS = "height,weight,species\n1.5,2,cat\n2.5,3,dog\n0.5,1,cat\n3,4,dog\n"


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_are_scikit_learns(name):
    table, theirs = load_table(name, None), getattr(datasets, f"load_{name}")()
    assert np.array_equal(table.inputs, theirs.data)
    classes, names = find_classes(table, 3 if name == "diabetes" else None)
    if name != "diabetes":
        assert np.array_equal(classes, theirs.target)
        assert names == [str(each) for each in theirs.target_names]


@pytest.mark.parametrize("ending", ["csv", "parquet", "CSV"])
def test_files_are_read(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    if ending == "parquet":
        columns = {"height": [1.5, 2.5, 0.5, 3], "species": ["cat", "dog", "cat", "dog"], "weight": [2, 3, 1, 4]}
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text(ROWS)
    table = load_table(str(path), "species")
    assert table.inputs.tolist() == [[1.5, 2], [2.5, 3], [0.5, 1], [3, 4]]
    classes, names = find_classes(table, None)
    assert classes.tolist() == [0, 1, 0, 1]
    assert names == ["cat", "dog"]


def test_a_target_of_numbers_names_its_classes(tmp_path):
    (tmp_path / "table.csv").write_text("x,y\n" + "1,7\n2,9\n" * 3)
    classes, names = find_classes(load_table(str(tmp_path / "table.csv"), "y"), None)
    assert classes.tolist() == [0, 1] * 3
    assert names == ["7", "9"]


def test_bins_are_equally_frequent_among_the_rows_that_decide():
    table = Table(np.zeros((100, 1)), np.arange(100.0))
    classes, names = find_classes(table, 4)
    assert np.bincount(classes).tolist() == [25] * 4
    assert (np.diff(classes) >= 0).all()
    assert len(names) == 4
    learned, _ = find_classes(table, 2, np.arange(10))
    assert np.bincount(learned).tolist() == [5, 95]


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (ROWS, "speces", "unknown target, which must be a column: 'speces'; did you mean 'species'"),
        (ROWS, None, "target must name the column to predict, one of height, weight, species, got None"),
        (ROWS, "height", "column 'species' must hold numbers, got string: encode it as numbers, or take it out"),
        (ROWS.replace("2.5", ""), "species", "column 'height' must have a value in every row, got 1 missing ones"),
        (ROWS.replace("2.5", "nan"), "species", "column 'height' must have a value in every row, got 1 missing ones"),
        (ROWS.replace("2.5", "inf"), "species", "column 'height' must hold numbers within .1e.100, got inf"),
        (ROWS.replace("dog", ""), "species", "column 'species' must have a value in every row, got 2 missing"),
        ("species\ncat\ndog\n", "species", "columns besides its target, got 2 rows and 0 columns"),
        ("height,species\n", "species", "must have rows, and columns besides its target, got 0 rows and 1 columns"),
        ("a,a,b\n1,2,3\n", "b", "columns of different names, got a, a, b"),
        ("a,b\n1,2\n3\n", "b", "must be a table with a row of column names"),
        ("", "b", "must be a table with a row of column names"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_one_line(tmp_path, text, target, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        find_classes(load_table(str(path), target), None)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("dataset", "target", "message"),
    [
        ("digit", None, "unknown dataset 'digit'; did you mean 'digits'"),
        ("nothing-like-it", None, "known: PATH.csv, PATH.parquet, breast_cancer, diabetes, digits, iris, openml/NAME"),
        ("iris", "species", "target must be None unless dataset is a CSV or Parquet file, got 'species'"),
        (7, None, "dataset must be the name of a data set or the path of a file, got 7"),
        ("missing.csv", "y", "must be a table with a row of column names, got 'missing.csv'"),
        ("openml/", None, "dataset must be openml/NAME or openml/NAME/VERSION"),
        ("openml/adult/two", None, "dataset must be openml/NAME or openml/NAME/VERSION"),
    ],
)
def test_names_that_cannot_be_used_are_refused(dataset, target, message):
    with pytest.raises(InputError, match=message):
        load_table(dataset, target)


def test_files_of_other_kinds_are_refused(tmp_path):
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    for target in (None, "species"):
        with pytest.raises(InputError, match=r"must be a file that ends in .csv or .parquet"):
            load_table(str(tmp_path / "table.xlsx"), target)
    (tmp_path / "table.parquet").write_text(ROWS)
    with pytest.raises(InputError, match="must be a table"):
        load_table(str(tmp_path / "table.parquet"), "species")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="must be a regular file"):
        load_table(str(tmp_path / "folder.csv"), "species")


@pytest.mark.parametrize(
    ("targets", "bins", "message"),
    [
        (np.full(9, 3.0), None, "dataset must have two classes or more, got one, 3"),
        (np.linspace(0, 1, 9), None, "bins must be given if the target is a quantity, as in bins=5, got None for 9"),
        (np.arange(300.0), None, "bins must be given if the target is a quantity"),
        (np.array(list("abcdefgh")), None, "fewer classes than half its rows, got 8 of 8"),
        (np.array(list("aabb")), 2, "bins must be None for a target of classes, got 2"),
        (np.array([1.0] * 8 + [2.0]), 4, "bins must be few enough for the target's values, got 4"),
        (np.array([1.0] + [2.0] * 8), 2, "bins must be few enough for the target's values, got 2"),
        (np.arange(9.0), 1, "bins must be at least 2, got 1"),
    ],
)
def test_targets_that_make_no_classes_are_refused(targets, bins, message):
    with pytest.raises(InputError, match=message):
        find_classes(Table(np.zeros((len(targets), 1)), targets), bins)


def openml(monkeypatch, answer):
    asked = []

    def fetch(**options):
        asked.append(options)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    return asked


def test_openml_sets_are_fetched_by_name_and_version(monkeypatch):
    data = np.array([[1.0, 2, 0], [2, 0, 1], [3, 1, 1], [4, 2, 0]])
    found = Bunch(
        data=data,
        target=np.array(["no", "yes", "no", "yes"], object),
        feature_names=["age", "colour", "sex"],
        categories={"colour": ["red", "green", "blue"], "sex": ["f", "m"]},
    )
    asked = openml(monkeypatch, found)
    table = load_table("openml/adult/2", None)
    assert (asked[0]["name"], asked[0]["version"]) == ("adult", 2)
    assert table.inputs.tolist() == [[1, 0, 0, 1, 0], [2, 1, 0, 0, 1], [3, 0, 1, 0, 1], [4, 0, 0, 1, 0]]
    assert find_classes(table, None)[1] == ["no", "yes"]
    load_table("openml/adult", None)
    assert asked[1]["version"] == "active"
    found.data = np.where(data == 3, np.nan, data)
    with pytest.raises(InputError, match="column 'age' must have a value in every row, got 1 missing"):
        load_table("openml/adult", None)
    found.data, found.target = data, np.array(["no", None, "no", "yes"], object)
    with pytest.raises(InputError, match="column 'target' must have a value in every row, got 1 missing"):
        load_table("openml/adult", None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (URLError("no route to host"), "in scikit-learn's cache or come over a network: OpenML cannot be reached"),
        (ValueError("Dataset adult not found."), "must be a table of OpenML's, got 'openml/adult' .Dataset adult not"),
        (Bunch(data=None, target=np.zeros(3)), "must be a dense table with one target"),
    ],
)
def test_openml_sets_that_cannot_be_had_are_refused_in_one_line(monkeypatch, answer, message):
    openml(monkeypatch, answer)
    with pytest.raises(InputError, match=message) as error:
        load_table("openml/adult", None)
    assert "\n" not in str(error.value)


def test_scikit_learns_own_fetcher_without_a_network(monkeypatch, tmp_path):
    def no_network(*args, **kwargs):
        raise URLError("Name or service not known")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", no_network)
    with pytest.raises(InputError, match=r"over a network: OpenML cannot be reached .*Name or service not known"):
        load_table("openml/adult", None)
