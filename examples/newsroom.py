"""From a CSV of headlines and a log of impressions to an agent that ranks tomorrow's articles for each reader.

The headlines' file has a row per article: article, date, headline. The impressions' has a row per impression: article,
clicked (0 or 1), and in all other columns what is known of the reader. Articles of the last date have no
impressions yet: they are ranked. Without files of your own, the script invents both, from the bundled synthetic
headlines and readers who click by the rule of the news setting. Needs: pip install 'gents-gym[news]'
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

import gents_gym
from gents_gym.agents.ts_gen import TSGen
from gents_gym.tasks.headlines.models import Encoder, Source
from gents_gym.tasks.headlines.prepare import fit_projection
from gents_gym.training.folder import split_actions

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--headlines", type=Path, help="CSV of articles; none: both files are invented")
parser.add_argument("--impressions", type=Path, help="CSV of impressions")
parser.add_argument("--out", type=Path, default=Path("results/newsroom"), help="for the model and what is invented")
parser.add_argument("--days", type=int, default=200, help="days of ten articles to invent")
parser.add_argument("--readers", type=int, default=500, help="readers to invent for each day")
parser.add_argument("--epochs", type=int, default=3)
arguments = parser.parse_args()
if (arguments.headlines is None) != (arguments.impressions is None):
    parser.error("--headlines and --impressions must be given together")
out = arguments.out
out.mkdir(parents=True, exist_ok=True)
news = gents_gym.make_tasks("news", horizon=arguments.readers)


def invent():
    """Write the two files: every day ten new articles, each reader shown one of them at random."""
    tasks = news.sample(0, range(arguments.days), "train")
    shown = np.random.default_rng(0).integers(tasks.n_actions, size=tasks.contexts.shape[:2])  # (days, readers)
    article = np.arange(arguments.days)[:, None] * tasks.n_actions + shown
    clicked = np.take_along_axis(tasks.outcomes, shown[..., None], 2)[..., 0].astype(int)
    texts = [*tasks.texts.ravel(), *news.sample(0, [0], "test").texts[0]]  # the last ten: tomorrow's
    date = np.datetime64("2026-01-01") + np.arange(len(texts)) // tasks.n_actions
    articles = {"article": range(len(texts)), "date": date, "headline": texts}
    csv.write_csv(pa.table(articles), out / "headlines.csv")
    readers = {f"reader_{j}": tasks.contexts[..., j].ravel() for j in range(tasks.context_dim)}
    impressions = {"article": article.ravel(), "clicked": clicked.ravel(), **readers}
    csv.write_csv(pa.table(impressions), out / "impressions.csv")
    return out / "headlines.csv", out / "impressions.csv"


invented = arguments.headlines is None
headlines_file, impressions_file = invent() if invented else (arguments.headlines, arguments.impressions)

# 1. Embed the headlines, and keep the directions in which yesterday's differ most.
headlines = csv.read_csv(headlines_file).to_pydict()
date = np.array(headlines["date"])
tomorrow = np.flatnonzero(date == date.max())
embeddings = Encoder("minilm", Source(local_files_only=True))(headlines["headline"])
embeddings = fit_projection(embeddings[date < date.max()], min(32, (date < date.max()).sum() - 1)).apply(embeddings)

# 2. Train p_θ on the log: how articles like these were clicked on by readers like those.
names = [f"z{j}" for j in range(embeddings.shape[1])]
articles = {"article": headlines["article"], **dict(zip(names, embeddings.T, strict=True))}
impressions = csv.read_csv(impressions_file)
readers = tuple(name for name in impressions.column_names if name not in ("article", "clicked"))
roles = gents_gym.Roles("article", "clicked", context=readers, action_features=("z*",))
logs = gents_gym.read_logs(impressions, roles, action_table=pa.table(articles))
rows, held_out = split_actions(gents_gym.RowSets.from_logs(logs), 0.1, seed=0)
config = gents_gym.preset_config("filter", "news", horizon=200, epochs=arguments.epochs)
model, _ = gents_gym.train(rows, held_out, config)
model.save_pretrained(out / "model")

# 3. Rank tomorrow's articles for every reader who comes, show the first, and learn from the click.
agent = TSGen(model, m=64)
info = gents_gym.TaskInfo(embeddings[tomorrow][None], len(tomorrow), rows.contexts.shape[1])
agent.reset(info, [np.random.default_rng(1)])
day = news.sample(0, [0], "test")  # where all is invented, tomorrow's readers and what each would click on
readers = day.contexts[0] if invented else rows.contexts[:3]
clicks = []
for i, reader in enumerate(readers):
    ranking = np.argsort(-agent.sample_scores(reader[None])[0, 0])
    if i < 3:
        print(f"\na reader with {np.round(reader, 1)} is shown, in this order:")
        print("\n".join(f"  {headlines['headline'][tomorrow[place]]}" for place in ranking[:3]))
    if invented:
        clicks.append(day.outcomes[0, i, ranking[0]])
        agent.observe(reader[None], ranking[:1], clicks[-1:])
if invented:
    print(f"\nclicks on the first article: {np.mean(clicks):.1%}; on one at random: {day.outcomes[0].mean():.1%}; "
          f"on the best for each reader: {day.means[0].max(axis=1).mean():.1%}")  # fmt: skip
