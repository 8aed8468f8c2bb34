"""Ids and what they stand for, as data; ``gents_gym.construct`` turns an id into an object."""

# Task distributions.
TASKS = {
    "synthetic": "gents_gym.tasks.synthetic:Synthetic",
}

# Gymnasium environments: the id, and the arguments that it is registered with.
ENVIRONMENTS = {
    "gents_gym/Synthetic-v0": {"tasks": "synthetic"},
}

# Agents; other distributions add theirs through the entry-point group "gents_gym.agents".
AGENTS = {
    "random": "gents_gym.agents.random:Random",
    "oracle": "gents_gym.agents.oracle:Oracle",
    "linucb": "gents_gym.agents.linucb:LinUCB",
    "lints": "gents_gym.agents.lints:LinTS",
    "per-task": "gents_gym.agents.per_task:PerTask",
}

# Bundled sequence models p_θ: the folder of each below gents_gym/models/weights.
MODELS = {
    "synthetic-filter": "synthetic-filter",
    "synthetic-paper": "synthetic-paper",
}

# Policy classes Π with their fitting rule.
POLICIES = {
    "logistic": "gents_gym.policies.logistic:Logistic",
}

# Reward functions R.
REWARDS = {
    "identity": "gents_gym.types:identity",
}
