"""What is distilled: a teacher, a model, the tasks to come, and how a network learns."""

from dataclasses import dataclass

from gents_gym.checks import InputError, check_integer, check_number


@dataclass(frozen=True)
class DistillConfig:
    """What is distilled, and how."""

    agent: str = "ts-gen(samples=8, m=64, votes=2)"
    """The teacher: an agent with probabilities, with options but without a model. Shares of few votes are cheap, and
    as good to learn from."""
    model: str = "synthetic-filter"
    """A bundled model or a model's folder; the teacher and the network act on it, and it imagines the tasks."""
    env: str | None = None
    """Environment of the tasks to come: its sizes, and after the training real tasks of it to measure on."""
    horizon: int | None = None
    """Decisions of a task to come; none: the environment's."""
    n_actions: int | None = None
    """Actions of a task to come; none: the environment's. The network plays any number."""
    contexts: float | str | None = None
    """Contexts to come, as in gents-gym tune."""
    tasks: int = 200
    """Imagined tasks that the teacher plays to be learned from."""
    held_out: int = 50
    """Other imagined tasks, and real ones, to measure on."""
    explore: float = 0.05
    """Share of decisions played at random while learning: beliefs that the teacher alone would not come to."""
    context: bool = False
    """Let the network read the context too."""
    width: int = 32
    """Of the network's hidden layers."""
    epochs: int = 20
    """Passes over all decisions."""
    learning_rate: float = 3e-3
    """Of Adam, falling to zero."""
    batch: int = 512
    """Decisions per step."""
    seed: int = 0
    """Seed of tasks, weights and order."""

    def check(self) -> None:
        """Raise unless the numbers are right; called by distill, because tyro rewords errors of ``__post_init__``."""
        for name, least in (("tasks", 1), ("held_out", 2), ("width", 1), ("epochs", 1), ("batch", 1), ("seed", 0)):
            check_integer(name, getattr(self, name), least)
        check_number("learning_rate", self.learning_rate, 0, above=True)
        if check_number("explore", self.explore, 0) > 1:
            raise InputError(f"explore must be at most 1, got {self.explore}")
