"""Train skrl's PPO on the native vector environment."""

import gymnasium as gym
import torch
from score import ID, SIZES, flat, report
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer

ENVS, ROLLOUTS, UPDATES = 16, 50, 10


def network(inputs, outputs):
    """Return a small network."""
    return torch.nn.Sequential(torch.nn.Linear(inputs, 64), torch.nn.Tanh(), torch.nn.Linear(64, outputs))


class Policy(CategoricalMixin, Model):
    """Logits of the actions."""

    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self)
        self.net = network(self.num_observations, self.num_actions)

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    """The value of an observation."""

    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = network(self.num_observations, 1)

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {}


torch.manual_seed(0)
env = wrap_env(gym.make_vec(ID, num_envs=ENVS, split="train", **SIZES))  # Dict observations are flattened by skrl
spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
config = PPO_CFG(rollouts=ROLLOUTS, discount_factor=0.0, experiment={"write_interval": 0, "checkpoint_interval": 0})
agent = PPO(
    models={"policy": Policy(**spaces), "value": Value(**spaces)},
    memory=RandomMemory(memory_size=ROLLOUTS, num_envs=ENVS, device=env.device),
    cfg=config,
    **spaces,
)
steps = ROLLOUTS * UPDATES
training = {"timesteps": steps, "headless": True, "disable_progressbar": True}
SequentialTrainer(env=env, agents=agent, cfg=training).train()


def choose(observation):
    """Return the most likely actions."""
    with torch.no_grad():
        rows = torch.from_numpy(flat(observation))
        return agent.policy.net(rows).argmax(dim=1).numpy()


report("skrl", steps * ENVS, choose)
