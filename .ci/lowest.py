"""Print pip constraints that put the dependencies, and those of the extras, at the lower bounds of pyproject.toml.

Arguments name other versions than the lowest: torch==2.13.0.
"""

import itertools
import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
pinned = dict(argument.split("==") for argument in sys.argv[1:])
extras = itertools.chain(*project["optional-dependencies"].values())
for requirement in itertools.chain(project["dependencies"], extras):
    if requirement.startswith("gents-gym["):  # an extra of other extras
        continue
    name, bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement).groups()
    print(f"{name}=={pinned.get(name, bound)}")
