"""Ids and what they stand for, as data; ``gents_gym.construct`` turns an id into an object."""

# Task distributions.
TASKS = {
    "synthetic": "gents_gym.tasks.synthetic:Synthetic",
    "news": "gents_gym.tasks.news:News",
}

# Gymnasium environments: the id, and the arguments that it is registered with.
ENVIRONMENTS = {
    "gents_gym/Synthetic-v0": {"tasks": "synthetic"},
    "gents_gym/News-v0": {"tasks": "news"},
}

# Agents; other distributions add theirs through the entry-point group "gents_gym.agents".
AGENTS = {
    "random": "gents_gym.agents.random:Random",
    "oracle": "gents_gym.agents.oracle:Oracle",
    "linucb": "gents_gym.agents.linucb:LinUCB",
    "lints": "gents_gym.agents.lints:LinTS",
    "neural-linear-ts": "gents_gym.agents.neural_linear:NeuralLinearTS",
    "greedy": "gents_gym.agents.greedy:Greedy",
    "epsilon-greedy": "gents_gym.agents.greedy:EpsilonGreedy",
    "softmax": "gents_gym.agents.greedy:Softmax",
    "ts-gen": "gents_gym.agents.ts_gen:TSGen",
    "gen-ucb": "gents_gym.agents.ts_gen:GenUCB",
    "exact-twin": "gents_gym.agents.exact_twin:ExactTwin",
    "per-task": "gents_gym.agents.per_task:PerTask",
    "callable": "gents_gym.agents.adapters.callable:from_callable",
    "online": "gents_gym.agents.adapters.online:online",
    "mabwiser": "gents_gym.agents.adapters.mabwiser:mabwiser",
    "vw": "gents_gym.agents.adapters.vw:vw",
    "sb3": "gents_gym.agents.adapters.sb3:SB3",
}

# Bundled sequence models p_θ: the folder of each below gents_gym/models/weights.
MODELS = {
    "synthetic-filter": "synthetic-filter",
    "synthetic-filter-10": "synthetic-filter-10",  # trained on 10 actions
    "synthetic-filter-100": "synthetic-filter-100",
    "synthetic-filter-1000": "synthetic-filter-1000",
    "synthetic-paper": "synthetic-paper",
    "synthetic-paper-100": "synthetic-paper-100",
    "synthetic-paper-1000": "synthetic-paper-1000",
    "synthetic-paper-layers0": "synthetic-paper-layers0",  # with fewer hidden layers
    "synthetic-paper-layers1": "synthetic-paper-layers1",
    "synthetic-paper-layers2": "synthetic-paper-layers2",
    "news-filter": "news-filter",  # of the bundled corpus
    "news-filter-100": "news-filter-100",
    "news-filter-1000": "news-filter-1000",
    "news-filter-blind": "news-filter-blind",  # which sees no embeddings
    "news-paper": "news-paper",
    "news-paper-1000": "news-paper-1000",
    "news-paper-layers0": "news-paper-layers0",
    "news-paper-layers1": "news-paper-layers1",
    "news-paper-layers2": "news-paper-layers2",
}

# Models by preset: an agent takes the first whose sizes are the task's.
FAMILIES = {
    "filter": ("synthetic-filter", "news-filter"),
    "paper": ("synthetic-paper", "news-paper"),
}

# Policy classes Π with their fitting rule.
POLICIES = {
    "logistic": "gents_gym.policies.logistic:Logistic",
    "mlp": "gents_gym.policies.mlp:MLP",
    "constrained": "gents_gym.policies.constrained:Constrained",
    "estimator": "gents_gym.policies.estimator:Estimator",
}

# Reward functions R.
REWARDS = {
    "identity": "gents_gym.types:identity",
}
