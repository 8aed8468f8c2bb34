"""Maps ids to what they refer to, as data; ``gents_gym.construct`` turns an id into an object."""

from typing import Any

# Task distributions.
TASKS = {
    "synthetic": "gents_gym.tasks.synthetic:Synthetic",
    "news": "gents_gym.tasks.news:News",
    "imagined": "gents_gym.models.imagined:Imagined",
    "classification": "gents_gym.tasks.classification:Classification",
    "across": "gents_gym.tasks.across:Across",
    "wheel": "gents_gym.tasks.wheel:Wheel",
    "bernoulli": "gents_gym.tasks.bernoulli:Bernoulli",
    "drifting": "gents_gym.tasks.drifting:Drifting",
    "correlated": "gents_gym.tasks.correlated:Correlated",
    "nonlinear": "gents_gym.tasks.nonlinear:Nonlinear",
    "general": "gents_gym.tasks.general:General",
}

# Gymnasium environments: the id, and the arguments that it is registered with.
ENVIRONMENTS = {
    "gents_gym/Synthetic-v0": {"tasks": "synthetic"},
    "gents_gym/News-v0": {"tasks": "news"},
    "gents_gym/Imagined-v0": {"tasks": "imagined"},
    "gents_gym/Classification-v0": {"tasks": "classification"},
    "gents_gym/Across-v0": {"tasks": "across"},
    "gents_gym/Wheel-v0": {"tasks": "wheel"},
    "gents_gym/Bernoulli-v0": {"tasks": "bernoulli"},
    "gents_gym/Drifting-v0": {"tasks": "drifting"},
    "gents_gym/Correlated-v0": {"tasks": "correlated"},
    "gents_gym/Nonlinear-v0": {"tasks": "nonlinear"},
    "gents_gym/General-v0": {"tasks": "general"},
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
    "squarecb": "gents_gym.agents.squarecb:SquareCB",
    "ts-gen": "gents_gym.agents.ts_gen:TSGen",
    "gen-ucb": "gents_gym.agents.ts_gen:GenUCB",
    "bayes-ucb": "gents_gym.agents.bayes_ucb:BayesUCB",
    "ids": "gents_gym.agents.ids:IDS",
    "gen-kg": "gents_gym.agents.gen_kg:GenKG",
    "auto": "gents_gym.agents.auto:Auto",
    "distilled": "gents_gym.agents.distilled:Distilled",
    "exact-twin": "gents_gym.agents.exact_twin:ExactTwin",
    "per-task": "gents_gym.agents.per_task:PerTask",
    "callable": "gents_gym.agents.adapters.callable:from_callable",
    "online": "gents_gym.agents.adapters.online:online",
    "mabwiser": "gents_gym.agents.adapters.mabwiser:mabwiser",
    "vw": "gents_gym.agents.adapters.vw:vw",
    "sb3": "gents_gym.agents.adapters.sb3:SB3",
}

# Agents on a model that ``gents-gym tune`` compares by default; ids that are not registered are skipped.
TUNED = (
    "greedy",
    "epsilon-greedy(epsilon=0.02)",
    "softmax(temperature=0.01)",
    "softmax(temperature=0.02)",
    "softmax(temperature=0.05)",
    "ts-gen",
    "ts-gen(samples=8, m=64)",
    "gen-ucb(quantile=0.6)",
    "gen-ucb",
    "gen-ucb(quantile=0.9)",
    "bayes-ucb(kappa=0.005)",
    "bayes-ucb(kappa=0.01)",
    "bayes-ucb(kappa=0.02)",
    "bayes-ucb(kappa=0.05)",
    "bayes-ucb(kappa=0.1)",
    "bayes-ucb(kappa=0.2)",
    "bayes-ucb(kappa=1.0)",
    "gen-kg(c=0.1)",
    "gen-kg(c=0.3)",
    "gen-kg(c=1.0)",
)

# Kinds of model p_θ; other distributions add theirs through the entry-point group "gents_gym.models".
MODELS = {
    "filter": "gents_gym.models.filter:FilterModel",
    "paper": "gents_gym.models.paper:PaperModel",
    "joint": "gents_gym.models.joint:JointModel",
    "transformer": "gents_gym.models.transformer:TransformerModel",
}

# Presets: the kind of each, and training options that differ from the defaults. Bundled weights are in folders
# SETTING-PRESET and SETTING-PRESET-VARIANT below gents_gym/models/weights. Variants for outcomes that are not
# binary belong to the preset: its name selects the model that fits the tasks.
PRESETS: dict[str, dict[str, Any]] = {
    "filter": {"kind": "filter"},
    "joint": {"kind": "joint", "whole_tasks": True},
    "paper": {
        "kind": "paper",
        "epochs": 100,
        "learning_rates": (0.1, 0.01, 0.001),
        "steps": 50,
        "replacement": True,
    },
    # Short sequences too: rows cost less there, and what is learned on them carries over to longer ones.
    "transformer": {
        "kind": "transformer",
        "gradient_steps": 6000,
        "epochs": 12,
        "batch": 32,
        "lengths": (100, 250, 500),
        "learning_rates": (0.003,),
        "warm_up": 0.1,
        "clip": 1.0,
        "averaging": 0.2,
        "validation_actions": 500,
    },
    # The paper's model and training as printed. Pieces of a batch that stay in the cache train fastest.
    "literal": {
        "kind": "paper",
        "model": {"raw": True, "intercept": False, "plain_context": True},
        "epochs": 100,
        "batch": 500,
        "memory": 0.03,
        "learning_rates": (0.1, 0.01, 0.001),
        "schedule": "constant",
        "scaling": False,
        "first_fit": False,
        "replacement": True,
        "validation_actions": 10_000,
    },
}

OUTCOME_VARIANTS = ("gaussian", "categorical")

# Sizes that training compares by validation loss, by preset; naming one of them turns the comparison off.
CANDIDATES: dict[str, tuple[dict[str, int], ...]] = {
    "filter": ({"context_features": 0}, {"context_features": 8}),
}

# Where training starts, by kind of model: functions of (model, rows, rng) that set the initial values.
STARTS = {
    "filter": "gents_gym.training.start:start_filter",
    "paper": "gents_gym.training.start:start_paper",
    "joint": "gents_gym.training.start:start_filter",
    "transformer": "gents_gym.training.start:start_transformer",
}

# What follows the training of a kind of model: functions of (model, rows, rng) that set what gradients do not.
FINISHES = {"joint": "gents_gym.training.sharing:fit_sharing"}

# What a setting changes in a preset.
PRESET_CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "news": {
        "filter": {
            "model": {"context_features": 4, "context_width": 64, "prior_width": 64},
            "epochs": 8,
            "batch": 200,
            "learning_rates": (0.005,),
        },
        # More and smaller steps than the paper's 40 epochs of 20,000 headlines in batches of 500.
        "paper": {"model": {"context_features": 4}, "epochs": 40, "batch": 100, "learning_rates": (0.003, 0.001)},
        # The size of φ̂ is our choice: the paper gives none.
        "literal": {"model": {"context_features": 8}, "epochs": 40},
        "transformer": {"model": {"context_features": 32}},
    },
    "nonlinear": {
        "filter": {
            "model": {"context_features": 14, "prior_width": 64},
            "epochs": 4,
            "batch": 200,
            "learning_rates": (0.005,),
        },
        "transformer": {"model": {"context_features": 32}},
    },
    # Contexts have units of their own in every task, and padded entries are 0.
    "general": {
        "transformer": {
            "model": {"padded": 1, "context_features": 32},
            "scaling": False,
            "horizon": 200,
            "batch": 64,
            "lengths": (25, 50, 100, 200),
        },
    },
    "drifting": {
        "filter": {"model": {"context_features": 0, "forgetting": 1}, "ordered": True},
        "transformer": {"model": {"positions": 1}, "ordered": True},
    },
}

# Policy classes Π with their fitting rule.
POLICIES = {
    "logistic": "gents_gym.policies.logistic:Logistic",
    "least-squares": "gents_gym.policies.least_squares:LeastSquares",
    "mlp": "gents_gym.policies.mlp:MLP",
    "constrained": "gents_gym.policies.constrained:Constrained",
    "features": "gents_gym.policies.features:OnFeatures",
    "moving": "gents_gym.policies.moving:Moving",
    "estimator": "gents_gym.policies.estimator:Estimator",
}

# Reward functions R.
REWARDS = {
    "identity": "gents_gym.types:identity",
    "half": "gents_gym.types:half",
    "signed": "gents_gym.types:signed",
}
