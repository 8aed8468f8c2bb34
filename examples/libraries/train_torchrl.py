"""Train torchrl's PPO on the native vector environment, whose slots torchrl resets itself.

``GymEnv(ID)`` makes the single environment.
"""

import gymnasium as gym
import torch
from score import ID, SIZES, flat, report
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import CatTensors, GymEnv, GymWrapper, TransformedEnv
from torchrl.envs.transforms import FlattenObservation
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

ENVS, BATCHES, ROLLOUTS, EPOCHS = 16, 10, 50, 8


def network(outputs):
    """Return a small network."""
    return torch.nn.Sequential(torch.nn.LazyLinear(64), torch.nn.Tanh(), torch.nn.LazyLinear(outputs))


torch.manual_seed(0)
assert GymEnv(ID, **SIZES).rollout(SIZES["horizon"])["next", "done"].sum() == 1
envs = GymWrapper(gym.make_vec(ID, num_envs=ENVS, split="train", autoreset_mode="Disabled", **SIZES))
env = TransformedEnv(envs)
env.append_transform(FlattenObservation(-2, -1, in_keys=["action_features"]))
env.append_transform(CatTensors(["action_features", "context"], "observation", del_keys=False, sort=False))
env.set_seed(0)
net = network(SIZES["n_actions"])
actor = ProbabilisticActor(
    TensorDictModule(net, in_keys=["observation"], out_keys=["logits"]),
    in_keys=["logits"],
    spec=env.action_spec,
    distribution_class=torch.distributions.OneHotCategorical,
    return_log_prob=True,
)
critic = ValueOperator(network(1), in_keys=["observation"])
data = env.rollout(2)
actor(data)
critic(data)  # the first call sets the sizes of lazy layers
advantage, loss = GAE(gamma=0.0, lmbda=0.95, value_network=critic), ClipPPOLoss(actor, critic)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
collector = Collector(env, actor, frames_per_batch=ENVS * ROLLOUTS, total_frames=ENVS * ROLLOUTS * BATCHES)
steps = 0
for batch in collector:
    steps += batch.numel()
    for _ in range(EPOCHS):
        advantage(batch)
        flat_batch = batch.reshape(-1)
        for part in flat_batch[torch.randperm(len(flat_batch))].split(200):
            found = loss(part)
            optimizer.zero_grad()
            (found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]).backward()
            optimizer.step()
collector.shutdown()


def choose(observation):
    """Return the most likely actions."""
    with torch.no_grad():
        return net(torch.from_numpy(flat(observation))).argmax(dim=1).numpy()


report("torchrl", steps, choose)
