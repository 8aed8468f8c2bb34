"""What every sequence model keeps, built-in models against slow versions, and folders of weights."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.special import expit

import gents_gym
from gents_gym import Bernoulli, Gaussian, InputError, TaskInfo, make_tasks, preset_config, registry
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.load import WEIGHTS, bundled_models, load_model, model_kinds, resolve_model
from gents_gym.models.paper import PaperConfig, PaperModel
from gents_gym.models.transformer import TransformerConfig, TransformerModel
from gents_gym.seals import write_described
from gents_gym.tasks.synthetic import Synthetic


def random_filter(**sizes):
    torch.manual_seed(0)
    model = FilterModel(FilterConfig(2, 5, **sizes))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.bank = torch.randn(7, 5)
    return model


def random_paper(**sizes):
    torch.manual_seed(0)
    model = PaperModel(PaperConfig(2, 5, **sizes))
    for parameter in model.parameters():
        parameter.data *= 2
    return model


def random_transformer(**sizes):
    torch.manual_seed(0)
    model = TransformerModel(TransformerConfig(2, 5, width=8, layers=2, heads=2, longest=50, **sizes))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


MODELS = {
    "filter": random_filter,
    "filter with everything": lambda: random_filter(context_features=4, prior_width=8, head_width=8, context_width=10),
    "paper": random_paper,
    "paper, no hidden layers": lambda: random_paper(hidden_layers=0),
    "paper with learned features": lambda: random_paper(context_features=3, context_width=10),
    "paper as printed": lambda: random_paper(raw=True, plain_context=True, intercept=False, context_features=3),
    "transformer": random_transformer,
    "transformer with everything": lambda: random_transformer(context_features=3, context_width=10, positions=1),
    "paper, one": lambda: random_paper(hidden_layers=1, width=20, repeats=3),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


@pytest.fixture(autouse=True)
def keep_generator():
    state = torch.random.get_rng_state()
    yield
    torch.random.set_rng_state(state)


def sequences(n=9, length=40):
    rows = Synthetic().sample_actions(0, range(n), length)
    return tuple(torch.tensor(part) for part in (rows.action_features, rows.contexts, rows.outcomes))


def chances(model, z, x, y, at=None):
    """P(Y=1) along whole sequences, from the log-probabilities of what came."""
    came = y if at is None else y[:, at]
    found = model.log_prob(z, x, y, at).exp()
    return torch.where(came == 1, found, 1 - found)


def logits(model, z, x, y):
    """The log-odds of Y=1 along whole sequences, from the log-probabilities of both outcomes, in double precision."""
    return torch.logit(chances(model, z, x, y).double())


@every_model
def test_both_paths_give_the_same_probabilities(make):
    model, (z, x, y) = make(), sequences()
    with torch.no_grad():
        parallel = chances(model, z, x, y)
        some = chances(model, z, x, y, torch.tensor([0, 7, 39]))
        state, recurrent = model.start(z), []
        for t in range(x.shape[1]):
            recurrent.append(model.predict(state, x[:, t]))
            state = model.append(state, x[:, t], y[:, t])
    assert (parallel - torch.stack(recurrent, 1)).abs().max() < 1e-5
    assert (some - parallel[:, [0, 7, 39]]).abs().max() < 1e-6
    assert parallel.std() > 0.005


@every_model
def test_appending_where_it_is_asked_for_alone(make):
    model, (z, x, y) = make(), sequences()
    with torch.no_grad():
        start = model.start(z)
        where = torch.arange(len(z)) % 2 == 0
        some = model.append(start, x[:, 0], y[:, 0], where)
        every = model.append(start, x[:, 0], y[:, 0])
        before, after, mixed = (model.predict(state, x[:, 1]) for state in (start, every, some))
    assert torch.allclose(mixed, torch.where(where, after, before), atol=1e-6)
    assert not torch.allclose(before, after)


@every_model
def test_an_action_does_not_depend_on_its_batch(make):
    model, (z, x, y) = make(), sequences()
    with torch.no_grad():
        together = model.log_prob(z, x, y)
        alone = model.log_prob(z[3:4], x[3:4], y[3:4])
    assert torch.allclose(together[3:4], alone, atol=1e-5)


@every_model
def test_entries_see_the_rows_before_them_alone(make):
    model, (z, x, y) = make(), sequences()
    with torch.no_grad():
        before = chances(model, z, x, y)
        y[:, 20:] = 1 - y[:, 20:]
        x[:, 21:] = 0
        after = chances(model, z, x, y)
    assert torch.equal(before[:, :20], after[:, :20])
    assert torch.allclose(before[:, 20], after[:, 20], rtol=0, atol=1e-6)  # from the other outcome's log-probability
    assert not torch.allclose(before[:, 21:], after[:, 21:])


@every_model
def test_features_are_of_an_empty_history(make):
    model, (z, x, _) = make(), sequences()
    with torch.no_grad():
        found = model.features(z, x[:, 0])
    width = model.size + 1 if isinstance(model, FilterModel) else model.config.width
    assert found.shape == (len(z), width)
    if isinstance(model, FilterModel):
        with torch.no_grad():
            rows, mean = model.rows(x[:, 0]), model.start(z).mean
        assert torch.allclose(found, torch.cat([rows, (rows * mean).sum(1, keepdim=True)], 1))
    if isinstance(model, PaperModel):
        with torch.no_grad():
            assert torch.allclose(torch.sigmoid(model.last(found)[:, 0]), model.predict(model.start(z), x[:, 0]))


def test_the_filter_is_its_formula():
    """One action, plain NumPy, word by word."""
    model, (z, x, y) = random_filter(), sequences(3, 25)
    w_mean, w_scale, w_lower = (
        p.detach().numpy().astype(float) for p in (model.prior_mean, model.prior_scale, model.prior_lower)
    )
    with torch.no_grad():
        found = chances(model, z, x, y).numpy()
    for i in range(3):
        f = z[i].numpy().astype(float)
        m = w_mean @ [1, *f]
        root = np.diag(np.exp(w_scale @ [1, *f, *f**2])) @ (np.eye(6) + np.tril(w_lower, -1))
        P = root @ root.T
        for t in range(25):
            row = np.array([1, *x[i, t].numpy()])
            kappa = 1 / np.sqrt(1 + np.pi / 8 * row @ P @ row)
            p = expit(kappa * row @ m)
            assert found[i, t] == pytest.approx(p, abs=1e-4)
            m = m + P @ row * kappa * (float(y[i, t]) - p)
            P = P - kappa**2 * p * (1 - p) * np.outer(P @ row, P @ row)


@pytest.mark.parametrize("literal", [False, True], ids=["paper", "literal"])
def test_the_paper_model_is_the_unfolded_network(literal):
    """The head with every statistic repeated, explicit inverses, and a 3,007-wide first layer."""
    choices = preset_config("literal").model if literal else {}
    config = PaperConfig(2, 5, **choices)
    model, (z, x, y) = random_paper(**choices), sequences(3, 12)
    wide = torch.cat([model.plain, (model.folded / config.repeats).repeat(1, config.repeats)], 1).detach()
    assert wide.shape[1] == 3007
    with torch.no_grad():
        found = logits(model, z, x, y)
        for i in range(3):
            for t in range(12):
                X, Y = x[i, :t].double(), y[i, :t].double()
                inverse = torch.linalg.inv(X.T @ X + torch.eye(5, dtype=torch.double))
                other = X.T @ Y if literal else inverse @ (X.T @ Y)
                statistics = torch.cat([inverse.flatten(), other]).float().repeat(config.repeats)
                hidden = wide @ torch.cat([z[i], x[i, t], statistics]) + model.bias
                assert found[i, t].item() == pytest.approx(model.last(model.hidden(hidden)).item(), abs=1e-4)


def test_the_literal_news_model_reads_the_context_itself_and_statistics_of_its_features():
    """A raw context beside Z, and X of φ̂ alone: no intercept, nothing standardised."""
    choices = preset_config("literal", "news").model
    model, (z, x, y) = random_paper(**choices), sequences(3, 12)
    with torch.no_grad():
        found, t = logits(model, z, x, y), 11
        for i in range(3):
            X = model.context_map(x[i, :t])  # (11, 8)
            statistics = torch.cat([torch.linalg.inv(X.T @ X + torch.eye(8)).flatten(), X.T @ y[i, :t]])
            hidden = model.plain @ torch.cat([z[i], x[i, t]]) + model.folded @ statistics + model.bias
            assert found[i, t].item() == pytest.approx(model.last(model.hidden(hidden)).item(), abs=1e-4)


@pytest.mark.parametrize("raw", [False, True], ids=["bounded", "raw"])
def test_gradients_reach_learned_features_through_the_statistics(raw):
    """Against finite differences of the row-by-row path, in double precision."""
    model, (z, x, y) = random_paper(context_features=3, context_width=4, width=6, raw=raw).double(), sequences(4, 12)
    z, x, y = z.double(), x.double(), y.double()
    weight = model.context_map[0].weight

    def loss():
        state, total = model.start(z)._replace(inverse=torch.eye(4, dtype=torch.double).repeat(4, 1, 1)), 0.0
        state = state._replace(products=torch.zeros(4, 4, dtype=torch.double))
        for t in range(11):
            state = model.append(state, x[:, t], y[:, t])
        total = torch.logit(model.predict(state, x[:, 11]))
        return total.sum()

    last = torch.logit(chances(model, z, x, y, torch.tensor([11]))).sum()
    (found,) = torch.autograd.grad(last, weight)
    assert last.item() == pytest.approx(loss().item(), abs=1e-6)
    with torch.no_grad():
        for i, j in ((0, 0), (2, 3), (3, 4)):
            kept = weight[i, j].item()
            sides = []
            for step in (1e-5, -1e-5):
                weight[i, j] = kept + step
                sides.append(loss().item())
            weight[i, j] = kept
            assert found[i, j].item() == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-3, abs=1e-6)


def forge(folder, change):
    """Change a folder's config.json, with right sha256 of it and of the weights."""
    config = json.loads((folder / "config.json").read_text())
    del config["sha256"]
    change(config)
    write_described(folder, "config.json", config, {"model.safetensors": (folder / "model.safetensors").read_bytes()})


def test_sizes_that_a_folder_does_not_name_have_their_defaults(tmp_path):
    random_paper().save_pretrained(tmp_path)
    forge(tmp_path, lambda config: config["config"].pop("context_features"))
    assert load_model(tmp_path).config == PaperConfig(2, 5)


def test_folded_weights_learn_as_their_copies_do():
    """AdamW on 5 copies of a statistic's weights, against AdamW on their sum with the model's own groups."""
    torch.manual_seed(1)
    repeats, inputs = 5, torch.randn(30, 4)
    model = PaperModel(PaperConfig(1, 1, hidden_layers=0, width=3, repeats=repeats))
    copies = torch.nn.Parameter(torch.randn(3, 4, repeats) * 0.1)
    model.folded = torch.nn.Parameter(copies.detach().sum(-1))
    wide = torch.optim.AdamW([copies], lr=0.003, weight_decay=0.05)
    narrow = torch.optim.AdamW(model.parameter_groups(0.003, 0.05)[:1])
    for _ in range(20):
        for optimizer, weights in ((wide, lambda: copies.sum(-1)), (narrow, lambda: model.folded)):
            optimizer.zero_grad()
            ((inputs @ weights().T - 1) ** 2).mean().backward()
            optimizer.step()
        assert torch.allclose(copies.sum(-1), model.folded, atol=1e-5)


@every_model
def test_folders_round_trip(make, tmp_path):
    model, (z, x, y) = make(), sequences()
    model.save_pretrained(tmp_path / "model", {"seed": 3})
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.config == model.config
    assert torch.equal(loaded.bank, model.bank)
    with torch.no_grad():
        assert torch.equal(loaded.log_prob(z, x, y), model.log_prob(z, x, y))
    assert not loaded.training


def resize(**sizes):
    return lambda config: config["config"].update(sizes)


FORGED = {  # of config.json
    "another version": (
        lambda config: config.update(format="gents_gym.model.99"),
        r"must have the format 'gents_gym\.model\.1', got 'gents_gym\.model\.99'",
    ),
    "unknown key": (lambda config: config.update(extra=1), "it has an unknown 'extra'"),
    "no kind": (lambda config: config.pop("kind"), "it lacks 'kind'"),
    "a list as kind": (lambda config: config.update(kind=["paper"]), r"it\['kind'\] is \['paper'\]"),
    "another kind": (
        lambda config: config.update(kind="papr"),
        r"must have a registered kind \(filter, joint, paper, transformer\), got 'papr': name its class",
    ),
    "sizes that are no mapping": (lambda config: config.update(config=[]), r"it\['config'\] is \[\]"),
    "a space that is no name": (lambda config: config.update(notes={"space": 3}), r"it\['notes'\] is "),
    "unknown size": (resize(depth=3), "missing or unknown: depth"),
    "missing size": (lambda config: config["config"].pop("action_dim"), "missing or unknown: action_dim"),
    "another size": (resize(context_dim=6), r"must hold \w+ of shape"),
    "a size of text": (resize(context_dim="5"), "context_dim must be a whole number, got '5'"),
    "a negative size": (resize(width=-1), r"config.json' must .* \(width must be at least 1, got -1\)"),
    "an enormous size": (resize(context_dim=10**6), "context_dim=1000000, .* must fit into this machine"),
    "a size that no computer has": (resize(width=10**30), "must have the sizes of a paper model"),
    "layers without end": (
        resize(hidden_layers=10**13),
        r"hidden_layers=10000000000000, .* must fit into this machine",
    ),
    "more tensors wanted": (resize(hidden_layers=4), r"missing or unexpected: hidden\.7\.bias"),
    "many more": (resize(hidden_layers=9), r"missing or unexpected: \S+, \S+, \S+ and 9 more"),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_configurations_with_right_seals_are_refused(tmp_path, what):
    change, message = FORGED[what]
    random_paper().save_pretrained(tmp_path)
    forge(tmp_path, change)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def drop_bias(tensors):
    del tensors["bias"]


FORGED_TENSORS = {
    "not numbers": (lambda all: all.update(bias=all["bias"] * torch.nan), "finite numbers, got others in bias"),
    "another type": (lambda all: all.update(bias=all["bias"].double()), "in float32, got .* in torch.float64"),
    "another shape": (lambda all: all.update(bias=all["bias"][:-1].clone()), r"bias of shape \(100,\).* got \(99,\)"),
    "a negative urn": (lambda all: all.update(urn=torch.tensor(-0.5)), "an urn of 0 to 1, got -0.5"),
    "fewer": (drop_bias, "missing or unexpected: bias"),
    "more": (lambda all: all.update(more=torch.zeros(1)), "missing or unexpected: more"),
}


@pytest.mark.parametrize("what", FORGED_TENSORS)
def test_forged_weights_with_right_seals_are_refused(tmp_path, what):
    change, message = FORGED_TENSORS[what]
    random_paper().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    forge(tmp_path, lambda config: None)
    with pytest.raises(InputError, match=rf"model.safetensors' must hold .*{message}"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.safetensors", lambda data: data[: len(data) // 2], "is damaged: it does not match its sha256"),
        ("model.safetensors", None, "must be a whole safetensors file"),
        ("config.json", None, r"must be a model's folder with a whole config\.json"),
        ("config.json", lambda data: data[:30], r"must be a model's folder with a whole config\.json"),
        ("config.json", lambda data: b"[" * 100_000, r"must be a model's folder with a whole config\.json"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, name, change, message):
    random_paper().save_pretrained(tmp_path)
    path = tmp_path / name
    path.write_bytes(change(path.read_bytes())) if change else path.unlink()
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_unknown_names_and_other_sizes():
    with pytest.raises(InputError, match=r"unknown model or folder 'synthetic-filtr'; did you mean"):
        gents_gym.load_model("synthetic-filtr")
    with pytest.raises(InputError, match=r"action_features must have shape \(N, 2\) for this model, got \(4, 3\)"):
        random_paper().start(torch.zeros(4, 3))
    for model in (random_paper(), random_filter()):
        with pytest.raises(InputError, match="contexts must have 5 entries for this model, got 4"):
            model.log_prob(torch.zeros(2, 2), torch.zeros(2, 3, 4), torch.zeros(2, 3))
    for name in (None, 3, []):
        with pytest.raises(InputError, match="a model must be named by its id, its preset or its folder"):
            load_model(name)


def test_features_far_from_the_training_ones_give_sound_predictions():
    model = load_model("synthetic-filter")
    for z in ([20.0, 20.0], [50.0, 0.0], [-1e4, 1e4]):
        state = model.start(torch.tensor([z]))
        assert torch.isfinite(model.predict(state, torch.ones(1, 5))).all()
        assert torch.diagonal(state.covariance[0]).max() < 100


def test_scaling_is_applied_to_contexts_and_features():
    for model in (random_paper(), random_filter(head_width=3)):
        z, x, y = sequences(4, 10)
        with torch.no_grad():
            plain = logits(model, z, x, y)
            model.action_scaling, model.context_scaling = (
                torch.tensor([[1.0] * 2, [3.0] * 2]),
                torch.tensor([[2.0] * 5, [0.5] * 5]),
            )
            assert torch.allclose(logits(model, z / 3 + 1, x * 2 + 2, y), plain, atol=1e-3)
            state = model.append(model.start(z / 3 + 1), x[:, 0] * 2 + 2, y[:, 0])
            assert torch.allclose(torch.logit(model.predict(state, x[:, 1] * 2 + 2).double()), plain[:, 1], atol=1e-3)


def constant_loss(rows):
    """The loss of the best prediction that is always the same."""
    if rows.likelihood == Gaussian():
        return 0.5 * np.log(2 * np.pi * np.e * rows.outcomes.var())
    shares = np.unique(rows.outcomes, return_counts=True)[1] / rows.outcomes.size
    return -(shares * np.log(shares)).sum()


@pytest.mark.parametrize("name", bundled_models())
def test_bundled_models_predict_their_setting(name):
    model = load_model(name)
    assert model.kind in model_kinds()
    options = {} if model.likelihood == Bernoulli() else {"outcomes": str(model.likelihood).partition("(")[0]}
    rows = make_tasks(name.partition("-")[0], **options).sample_actions(11, range(200), 100, "test")
    assert model.bank.shape == (1000 if model.banked else 0, rows.contexts.shape[2])
    assert model.space == rows.space
    assert model.likelihood == rows.likelihood
    z, x, y = (torch.tensor(part) for part in (rows.action_features, rows.contexts, rows.outcomes))
    with torch.no_grad():
        loss = -model.log_prob(z, x, y).mean().item()
    assert loss < 0.8 * constant_loss(rows)
    notes = json.loads((WEIGHTS / name / "config.json").read_text())["notes"]
    assert notes["validation_loss"]["mean"] == pytest.approx(loss, rel=0.15)
    assert "train" in notes["source"]


def test_bundled_weights_are_small_and_hold_no_pickle():
    files = [path for path in WEIGHTS.rglob("*") if path.is_file()]
    weights = [path.stat().st_size for path in files if path.suffix == ".safetensors"]
    assert max(weights) < 1_200_000
    assert sum(weights) < 6_500_000
    assert sum(path.stat().st_size for path in files) < 9_800_000
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".md", ".png"}


def test_a_copied_bundle_loads_from_anywhere(tmp_path):
    shutil.copytree(WEIGHTS / "synthetic-filter", tmp_path / "mine")
    assert load_model(tmp_path / "mine").kind == "filter"


def tasks_of(n_features, context_dim):
    return TaskInfo(np.zeros((1, 2, n_features), np.float32), 2, context_dim)


def test_a_preset_stands_for_its_model_of_the_tasks_sizes(tmp_path, monkeypatch):
    shutil.copytree(WEIGHTS / "synthetic-filter", tmp_path / "synthetic-filter")
    other = FilterModel(FilterConfig(7, 3))
    other.save_pretrained(tmp_path / "other-filter")
    monkeypatch.setattr("gents_gym.models.load.WEIGHTS", tmp_path)
    monkeypatch.setitem(registry.TASKS, "other", "nobody:knows")
    assert resolve_model("filter", tasks_of(7, 3)).config == other.config
    assert resolve_model("filter", tasks_of(2, 5)).config == load_model("synthetic-filter").config
    with pytest.raises(
        InputError, match=r"8 action features.*; synthetic-filter has 2 and 5, .*, and 1 more of 'filter' do not fit"
    ):
        resolve_model("filter", tasks_of(8, 3))
    with pytest.raises(
        InputError, match="model must be one of synthetic-filter, other-filter, got the preset 'filter'"
    ):
        load_model("filter")


@pytest.mark.parametrize("name", ["synthetic-filter", "synthetic-paper"])
@pytest.mark.parametrize(("n_actions", "n_outcomes"), [(2, 3), (2, 5), (1, 4)])
def test_sequences_of_unequal_length_are_refused(name, n_actions, n_outcomes):
    parts = (torch.zeros(n_actions, 2), torch.zeros(2, 4, 5), torch.zeros(2, n_outcomes))
    with pytest.raises(InputError, match=r"must be \(N, F\), \(N, T, D\) and \(N, T\), got "):
        load_model(name).log_prob(*parts)
