"""Train RLlib's PPO (its new API stack) on single environments, or on the native vector environment."""

import argparse

import gymnasium as gym
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from score import ID, SIZES, flat, report

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--mode", default="vector_entry_point", help="how 16 environments are made: also sync or async")
BATCH, ITERATIONS = 800, 10

config = (
    PPOConfig()
    .environment(ID, env_config={"split": "train", **SIZES})
    .env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=16,
        gym_env_vectorize_mode=gym.VectorizeMode(parser.parse_args().mode),
        env_to_module_connector=lambda *_, **__: FlattenObservations(),
    )
    .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64]))
    .training(train_batch_size=BATCH, minibatch_size=200, num_epochs=8, lr=1e-3, gamma=0.0)
    .debugging(seed=0)
)
algorithm = config.build_algo()
for _ in range(ITERATIONS):
    result = algorithm.train()
module = algorithm.get_module()


def choose(observation):
    """Return the most likely actions."""
    with torch.no_grad():
        rows = {"obs": torch.from_numpy(flat(observation))}
        return module.forward_inference(rows)["action_dist_inputs"].argmax(dim=1).numpy()


report("ray", int(result["num_env_steps_sampled_lifetime"]), choose)
algorithm.stop()
ray.shutdown()
