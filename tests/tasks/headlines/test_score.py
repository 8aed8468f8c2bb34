"""The scores that need no network, by hand."""

import numpy as np
import pytest

from gents_gym.tasks.headlines.score import formality, sentiment


def f_score(formal, deictic, words):
    return 50 * (1 + (formal - deictic) / words)


@pytest.mark.parametrize(
    ("headline", "formal", "deictic", "words"),
    [
        ("Report of the committee on water", 6, 0, 6),  # noun, preposition, article, noun, preposition, noun
        ("We really hated it", 0, 4, 4),  # pronoun, adverb, verb, pronoun
        ("County hospital wins national award", 4, 1, 5),  # noun, noun, verb, adjective, noun
        ("You're happy and they're sad", 2, 4, 7),  # you, are, they, are; happy, sad; "and" is neither
        ("We didn't", 0, 3, 3),  # we, did, not
        ("City's water", 2, 0, 2),  # a possessive is no word
        ("?!", 0, 0, 1),
    ],
)
def test_formality_is_heylighen_and_dewaeles_f(headline, formal, deictic, words):
    assert formality([headline])[0] == pytest.approx(f_score(formal, deictic, words))


def test_case_and_apostrophes_do_not_matter():
    texts = ["Here's why you won't love it", "HERE’S WHY YOU WON’T LOVE IT", "Here's Why You Won't Love It"]
    assert len(set(formality(texts).tolist())) == 1


def test_registers_are_told_apart():
    formal = formality(["Annual report of the Ministry of Justice on prison administration"])
    casual = formality(["Wow, you really have to see how they did it"])
    assert formal[0] - casual[0] > 50


def test_sentiment_is_vaders_compound():
    scores = sentiment(["Great success, wonderful day", "Tragic death in brutal attack", "Council meets on Monday"])
    # x / sqrt(x² + 15) of the lexicon's valences: great 3.1, success 2.7, wonderful 2.7
    assert scores[0] == pytest.approx(8.5 / np.sqrt(8.5**2 + 15), abs=1e-4)
    assert scores[1] < -0.8
    assert scores[2] == 0
