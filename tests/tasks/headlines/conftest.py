"""Tiny text models, built and saved on the spot: a DistilBERT encoder, a DistilBERT and a RoBERTa classifier."""

import pytest

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


def save_tokenizer(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    fast.save_pretrained(folder)
    return {"vocab_size": len(vocabulary), "max_position_embeddings": 140}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folders by kind, and the models as they were saved."""
    import torch
    import transformers as hf

    hf.utils.logging.disable_progress_bar()
    top = tmp_path_factory.mktemp("models")
    small = {"dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    folders, saved = {}, {}
    torch.manual_seed(0)
    for kind in ("encoder", "sentiment", "formality"):
        sizes = save_tokenizer(top / kind)
        if kind == "encoder":
            model = hf.DistilBertModel(hf.DistilBertConfig(**sizes, **small))
        elif kind == "sentiment":
            labels = {0: "NEGATIVE", 1: "POSITIVE"}
            model = hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**sizes, **small, id2label=labels))
        else:
            labels = {0: "informal", 1: "formal"}
            config = hf.RobertaConfig(
                **sizes, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                pad_token_id=0, type_vocab_size=1, id2label=labels,
            )  # fmt: skip
            model = hf.RobertaForSequenceClassification(config)
        model.eval().save_pretrained(top / kind)
        folders[kind], saved[kind] = top / kind, model
    return folders, saved
