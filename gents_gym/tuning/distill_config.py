"""Defines what is distilled: a teacher, a model, the future tasks, and how a network learns."""

from dataclasses import dataclass

from gents_gym.checks import InputError, check_integer, check_number


@dataclass(frozen=True)
class DistillConfig:
    """What is distilled, and how."""

    agent: str = "ts-gen(samples=8, m=64, votes=2)"
    """The teacher: an agent that can report probabilities, with options but without a model. Few votes are cheap, and
    as good to learn from."""
    model: str = "synthetic-filter"
    """A bundled model or a model's folder; the teacher and the network act on it, and it imagines the tasks."""
    env: str | None = None
    """Environment of the future tasks: it gives their sizes, and real tasks to measure on after training."""
    horizon: int | None = None
    """Decisions per future task; none: the environment's."""
    n_actions: int | None = None
    """Actions per future task; none: the environment's. The network can play any number."""
    contexts: float | str | None = None
    """Future contexts, as in gents-gym tune."""
    tasks: int = 200
    """Imagined tasks that the teacher plays as training data."""
    held_out: int = 50
    """Further imagined tasks, and real ones, to measure on."""
    explore: float = 0.05
    """Share of random decisions in the training data, to cover beliefs that the teacher alone would not reach."""
    context: bool = False
    """Let the network read the context too."""
    width: int = 32
    """Width of the network's hidden layers."""
    epochs: int = 20
    """Passes over all decisions."""
    learning_rate: float = 3e-3
    """Learning rate of Adam; it falls to zero."""
    batch: int = 512
    """Decisions per step."""
    seed: int = 0
    """Seed of tasks, weights and the order of training data."""

    def check(self) -> None:
        """Raise unless the numbers are valid; called by distill, because tyro rewords errors of ``__post_init__``."""
        for name, least in (("tasks", 1), ("held_out", 2), ("width", 1), ("epochs", 1), ("batch", 1), ("seed", 0)):
            check_integer(name, getattr(self, name), least)
        check_number("learning_rate", self.learning_rate, 0, above=True)
        if check_number("explore", self.explore, 0) > 1:
            raise InputError(f"explore must be at most 1, got {self.explore}")
