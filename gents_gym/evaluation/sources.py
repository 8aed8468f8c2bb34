"""Records the code that results come from: the sha256 of files that specs name, and this package's commit."""

import hashlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import gents_gym
from gents_gym.checks import InputError
from gents_gym.construct import agent_ids, find, parse_spec

TARGET = re.compile(r"[^\W\d][\w.]*:[\w.]*")  # package.module:Class, or an environment with its module in front
COVERED = {"gents_gym", *sys.stdlib_module_names}  # already covered by the run's commit and versions


def code_hashes(*specs: str) -> dict[str, str]:
    """Return the sha256 of what specs name outside this package, by name; {} if they name nothing.

    These are the source files of modules ("mine:MyAgent") and of the modules that define a named class and its bases;
    the manifests of corpora ("corpus=folder") and the configurations of models that environments draw tasks from, which
    both hold the sha256 of the files next to them; and data sets ("dataset=file"). Other imports of a module are not
    covered.
    """
    files = {name: path for spec in specs for name, path in _files(spec)}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(files.items())}


def _files(spec: str) -> Iterator[tuple[str, Path]]:
    (name, options), agents = parse_spec(spec), agent_ids()
    for target in TARGET.findall(f"{agents.get(name, '')} {spec}"):
        for module in _modules(target):
            if module.partition(".")[0] not in COVERED and (path := _source(module)) is not None:
                yield module, path
    kept = {"corpus": "manifest.json"}
    if name not in agents:  # an agent's model is covered by its weights
        kept["model"] = "config.json"
    for option, file in kept.items():
        folder = options.get(option)
        if isinstance(folder, str) and (described := Path(folder) / file).is_file():
            yield folder, described
    data = options.get("dataset")
    if isinstance(data, str) and Path(data).is_file():
        yield data, Path(data)


def _modules(target: str) -> Iterator[str]:
    with suppress(InputError):  # a text that contains a colon, or an environment
        found = find("code", target, {})
        yield from (str(getattr(each, "__module__", "")) for each in getattr(found, "__mro__", (found,)))
    yield target.partition(":")[0]  # imported by now, so it is found


def _source(module: str) -> Path | None:
    """Return a module's file; None if it has none, like a script or a notebook."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    path = Path(spec.origin or "") if spec is not None else Path()
    return path if path.is_file() else None


def commit() -> str | None:
    """Return the commit of the checkout that the package is imported from, plus "+" and a hash if it was changed.

    None if the package is installed.
    """
    top = Path(gents_gym.__file__).parent.parent
    if not (top / ".git").exists() or not (head := _git(top, "rev-parse", "HEAD").decode().strip()):
        return None
    changes = _git(top, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--", "gents_gym")
    return f"{head}+{hashlib.sha256(changes).hexdigest()[:12]}" if changes else head


def _git(top: Path, *arguments: str) -> bytes:
    """Return what git prints; an empty text if it fails or is missing."""
    try:
        return subprocess.run(["git", "-C", top, *arguments], capture_output=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return b""
