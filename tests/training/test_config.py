import pytest

from gents_gym import InputError, preset_config, registry
from gents_gym.training.config import TrainConfig, plain_config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"head_width": -1}}, "head_width must be at least 0, got -1"),
        ({"model": {"head_width": "abc"}}, "head_width must be a whole number, got 'abc'"),
        ({"model": {"action_dim": 7}}, "unknown size of a filter model: 'action_dim'"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"learning_rates": ()}, "learning_rates must name at least one, got none"),
        ({"learning_rates": (0.0,)}, "learning_rates must be above 0, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"gradient_steps": 2}, "gradient_steps must be at least 3, got 2"),
        ({"memory": 0}, "memory must be above 0, got 0"),
        ({"lengths": (50, 0)}, "lengths must be at least 1, got 0"),
        ({"warm_up": 1}, "warm_up must be below 1, got 1"),
        ({"averaging": -0.1}, r"averaging must be at least 0, got -0\.1"),
        ({"clip": 0}, "clip must be above 0, got 0"),
        ({"choose": 1}, "choose must be True or False, got 1"),
        ({"replacement": "yes"}, "replacement must be True or False, got 'yes'"),
        ({"model": {"likelihood": "gaussian"}}, "unknown size of a filter model: 'likelihood'"),
        ({"horizon": 1.5}, r"horizon must be a whole number, got 1\.5"),
    ],
)
def test_bad_configurations(changes, message):
    with pytest.raises(InputError, match=message):
        preset_config("filter", **changes)


def test_bad_presets_and_sizes():
    with pytest.raises(InputError, match=r"unknown preset 'filer'; did you mean 'filter'\?"):
        preset_config("filer")
    with pytest.raises(InputError, match="unknown size of a paper model: 'hidden_layer'; did you mean 'hidden_layers'"):
        preset_config("paper", model={"hidden_layer": 1})
    with pytest.raises(InputError, match="repeats must be at least 1, got 0"):
        preset_config("paper", model={"repeats": 0})
    with pytest.raises(InputError, match="unknown option of preset 'filter': unexpected keyword argument 'epoch'; did"):
        preset_config("filter", epoch=3)


def test_presets_and_settings_fill_in_what_is_not_given():
    assert preset_config("filter") == TrainConfig()
    assert preset_config("filter(prior_width=3)") == preset_config("filter", model={"prior_width": 3})
    assert preset_config("paper").steps == registry.PRESETS["paper"]["steps"]
    news = preset_config("filter", "news", model={"prior_width": 3})
    assert news.model == {**registry.PRESET_CHANGES["news"]["filter"]["model"], "prior_width": 3}
    assert (news.batch, preset_config("filter", "news", batch=7).batch, preset_config("filter").batch) == (200, 7, None)


def test_plans_are_of_json_values():
    assert plain_config(preset_config("paper"))["learning_rates"] == [0.1, 0.01, 0.001]
