"""Print pip constraints that put the dependencies, and those of the extras, at the lower bounds of pyproject.toml."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
pinned = dict(argument.split("==") for argument in sys.argv[1:])  # another version than the lowest: torch==2.13.0
groups = [project["dependencies"], *project["optional-dependencies"].values()]
for requirement in (one for group in groups for one in group):
    if found := re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement):
        name, bound = found.groups()
        print(f"{name}=={pinned.get(name, bound)}")
