"""The command that shows what is believed, decision by decision: inspect."""

from dataclasses import dataclass
from pathlib import Path

from gents_gym.cli.console import progress_bar


@dataclass(frozen=True)
class Inspect:
    """Play one task and write a page that steps through it: the table, the predictions, the policy, the action."""

    env: str = "gents_gym/Synthetic-v0"
    """Environment, options behind it."""
    agent: str = "ts-gen"
    """Agent, options behind it: "ts-gen(m=64)"."""
    task: int = 0
    """Number of the task in the test stream."""
    seed: int = 0
    """Seed of task and agent."""
    steps: int | None = None
    """Decisions to play; none: 40, or the horizon if that is shorter."""
    model: str | None = None
    """Model whose belief is shown, for agents without one of their own; none: the agent's."""
    dims: tuple[int, int] | None = None
    """Two entries of the context, from 0: the axes of the policy's map; none: the first two."""
    draws: int = 8
    """Completed tables behind the shades of missing cells."""
    truth: bool = False
    """Show what no agent may know: true outcomes of missing cells and true mean rewards."""
    out: Path = Path("inspection.html")
    """File to write; an earlier inspection's is replaced, any other file is refused."""

    def run(self) -> None:
        """Check, play, record, write."""
        from gents_gym.inspection.page import check_page, write_page
        from gents_gym.inspection.record import STEPS, inspect_task

        check_page(self.out)
        with progress_bar(counted=False) as progress:
            bar = progress.add_task("playing and recording", total=2 * (self.steps or STEPS))
            found = inspect_task(
                self.env, self.agent, task=self.task, seed=self.seed, steps=self.steps, model=self.model,
                dims=self.dims, draws=self.draws, truth=self.truth, on_step=lambda: progress.advance(bar),
            )  # fmt: skip
        path = write_page(found, self.out)
        print(f"{found.agent} played {len(found.actions)} decisions for a reward of {found.rewards.sum():g}")
        print(f"written to {path} ({path.stat().st_size / 1e6:.2f} MB): open it in a browser, step with the arrow keys")
