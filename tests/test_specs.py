import pytest

from gents_gym import InputError
from gents_gym.registry import POLICIES
from gents_gym.specs import check_registered, parse_spec, write_spec


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("linucb", ("linucb", {})),
        ("lints(prior=fitted)", ("lints", {"prior": "fitted"})),
        ("ts-gen( samples=4, policy=mlp )", ("ts-gen", {"samples": 4, "policy": "mlp"})),
        ("ts-gen(model=synthetic-filter)", ("ts-gen", {"model": "synthetic-filter"})),
        ("a.b:C(x=[1, 2], y='p q', z=None, w=-0.5)", ("a.b:C", {"x": [1, 2], "y": "p q", "z": None, "w": -0.5})),
        (
            "f(x=a.b:C, y=/tmp/m.zip, z='u, v=w', d={'k': (1, 2)})",
            ("f", {"x": "a.b:C", "y": "/tmp/m.zip", "z": "u, v=w", "d": {"k": (1, 2)}}),
        ),
        ("f()", ("f", {})),
        ("f(x=m:C(a=1, b=[2, 3]), y=2)", ("f", {"x": "m:C(a=1, b=[2, 3])", "y": 2})),
        ("f(x=g(y=h(z=1)))", ("f", {"x": "g(y=h(z=1))"})),
        ("sb3(path=model.zip, deterministic=True)", ("sb3", {"path": "model.zip", "deterministic": True})),
    ],
)
def test_specs_are_names_with_literal_options(spec, expected):
    assert parse_spec(spec) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lints(fitted)", "options must be named"),
        ("lints(**{})", "options must be named"),
        ("lints(prior=)", "an option's value must be a literal or a word, got 'prior='"),
        ("lints(prior=open('x'))", "an option's value must be a literal or a word"),
        ("lints(prior=[1, 2)", "an option's value must be a literal or a word"),
        ("lints(prior=1, prior=2)", "each once"),
        ("lints(prior=1,)", "options must be named"),
        ("lints(prior=fitted", "a spec must look like"),
        ("", "a spec must look like"),
        ("a b", "a spec must look like"),
        ("f(a=g(b=1)", "an option's value must be a literal or a word"),
        ("f(a=g(h()))", "an option's value must be a literal or a word"),
        ("f(" + "a=f(" * 5000 + ")" * 5001, "an option's value must be a literal or a word"),
        ("f(a=1)(b=2)", "an option's value must be a literal or a word"),
    ],
)
def test_specs_are_never_code(spec, message):
    with pytest.raises(InputError, match=message):
        parse_spec(spec)


@pytest.mark.parametrize("spec", ["logistic", "mlp(width=8)", "constrained(group1=[[0.0]], base=mlp)"])
def test_a_file_may_name_registered_ids(spec):
    assert check_registered("oracle", spec, POLICIES) == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("os:system(command='touch pwned')", "oracle in a file must use registered ids, never package.module:Class"),
        ("constrained(base='mine:Policy')", "oracle in a file must use registered ids"),
        (r"constrained(base='mine\x3aPolicy')", "oracle in a file must use registered ids"),
        (
            "estimator(estimator=[['sklearn.tree:DecisionTreeClassifier']])",
            "oracle in a file must use registered ids",
        ),
        ("logistik", "unknown oracle 'logistik'; did you mean 'logistic'"),
        (7, "a spec must look like"),
        (None, "a spec must look like"),
    ],
)
def test_a_file_may_name_nothing_else(spec, message):
    with pytest.raises(InputError, match=message):
        check_registered("oracle", spec, POLICIES)


@pytest.mark.parametrize("options", [{}, {"m": 8, "c": 0.5, "model": "/a b/it's, (so)"}, {"x": None, "y": [1, "z"]}])
def test_what_is_written_is_read_back(options):
    assert parse_spec(write_spec("ts-gen", options)) == ("ts-gen", options)
