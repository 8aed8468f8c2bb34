import pytest

from gents_gym.schema import check_schema, positive, whole

SCHEMA = {"name": str, "sizes": [positive], "hashes": {str: str | None}, "flag": bool, "more?": {"seed": whole}}
RIGHT = {"name": "a", "sizes": [1, 2], "hashes": {"x": None, "y": "z"}, "flag": True, "more": {"seed": 0}}


def test_what_fits():
    check_schema(RIGHT, SCHEMA)
    check_schema({key: value for key, value in RIGHT.items() if key != "more"}, SCHEMA)
    check_schema({**RIGHT, "sizes": [], "hashes": {}}, SCHEMA)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, r"it\['name'\] is 3"),
        ({"name": None}, r"it\['name'\] is None"),
        ({"sizes": {}}, r"it\['sizes'\] is \{\}"),
        ({"sizes": [1, 0]}, r"it\['sizes'\]\[1\] is 0"),
        ({"sizes": [True]}, r"it\['sizes'\]\[0\] is True"),
        ({"hashes": {"x": 1}}, r"it\['hashes'\]\['x'\] is 1"),
        ({"hashes": []}, r"it\['hashes'\] is \[\]"),
        ({"flag": 1}, r"it\['flag'\] is 1"),
        ({"more": {}}, r"it\['more'\] lacks 'seed'"),
        ({"more": {"seed": -1}}, r"it\['more'\]\['seed'\] is -1"),
        ({"other": 1}, "it has an unknown 'other'"),
    ],
)
def test_what_does_not(change, message):
    with pytest.raises(ValueError, match=message):
        check_schema({**RIGHT, **change}, SCHEMA)


@pytest.mark.parametrize("value", [None, 3, [], "text"])
def test_no_object_at_all(value):
    with pytest.raises(ValueError, match="it is "):
        check_schema(value, SCHEMA)
