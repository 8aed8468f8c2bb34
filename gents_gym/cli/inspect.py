"""The command ``inspect``, which shows the belief behind each decision of one task."""

from dataclasses import dataclass
from pathlib import Path

from gents_gym.cli.console import progress_bar


@dataclass(frozen=True)
class Inspect:
    """Play one task and write a page that steps through it: the table, the predictions, the policy, the action."""

    env: str = "gents_gym/Synthetic-v0"
    """Environment, optionally with options."""
    agent: str = "ts-gen"
    """Agent, optionally with options: "ts-gen(m=64)"."""
    task: int = 0
    """Number of the task in the test stream."""
    seed: int = 0
    """Seed of task and agent."""
    steps: int | None = None
    """Decisions to play; none: 40, or the horizon if that is shorter."""
    model: str | None = None
    """Model whose belief is shown, for agents without a model; none: the agent's own."""
    dims: tuple[int, int] | None = None
    """Two context entries, counted from 0, as axes of the policy map; none: the first two."""
    draws: int = 8
    """Completed tables that the shades of missing cells are based on."""
    truth: bool = False
    """Also show what is hidden from agents: true outcomes of missing cells and true mean rewards."""
    out: Path = Path("inspection.html")
    """File to write; an earlier inspection is replaced, any other file is refused."""

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
        for remark in found.remarks:
            print(f"note: {remark}")
        print(f"written to {path} ({path.stat().st_size / 1e6:.2f} MB): open it in a browser, step with the arrow keys")
