"""Train tianshou's PPO on single environments, flattened, in its own vector environment."""

import gymnasium as gym
import torch
from gymnasium.wrappers import FlattenObservation
from score import ID, SIZES, flat, report
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

ENVS, STEPS, EPOCHS = 16, 800, 10


def make():
    """Return one environment."""
    return FlattenObservation(gym.make(ID, split="train", **SIZES))


torch.manual_seed(0)
env = make()
envs = DummyVectorEnv([make] * ENVS)
envs.seed(0)
net = Net(state_shape=env.observation_space.shape, hidden_sizes=[64])
actor = DiscreteActor(preprocess_net=net, action_shape=env.action_space.n, softmax_output=False)
policy = DiscreteActorPolicy(actor=actor, action_space=env.action_space, deterministic_eval=True)
critic = DiscreteCritic(preprocess_net=net)
algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.0)
params = OnPolicyTrainerParams(
    training_collector=Collector(algorithm, envs, VectorReplayBuffer(STEPS, ENVS)),
    max_epochs=EPOCHS,
    epoch_num_steps=STEPS,
    collection_step_num_env_steps=STEPS,
    update_step_num_repetitions=8,
    show_progress=False,
)
algorithm.run_training(params)


def choose(observation):
    """Return the most likely actions."""
    with torch.no_grad():
        return actor(torch.from_numpy(flat(observation)))[0].argmax(dim=1).numpy()


report("tianshou", EPOCHS * STEPS, choose)
