"""Adds pages to the documentation site that are not in docs/: the API reference, the examples and the project's files.

MkDocs calls these functions while it builds (``hooks`` in mkdocs.yml).
"""

import dataclasses
import importlib
import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import gents_gym

TOP = Path(__file__).parent.parent
PROJECT = {"CHANGELOG.md": "Changelog", "CONTRIBUTING.md": "Contributing", "SECURITY.md": "Security"}
GROUPS = {  # of public names, in the order of the reference
    "Play and evaluate": (
        "rollout Rollout evaluate EvaluationConfig load_results compare RecordRegret VectorRecordRegret"
    ),
    "Environments and tasks": (
        "BanditEnv BanditVectorEnv PreviousStep VectorPreviousStep LateOutcomes VectorLateOutcomes "
        "TaskDistribution Tasks ActionRows make_tasks register_tasks"
    ),
    "Agents and policies": "Agent TaskInfo PerTask make_agent PolicyClass make_policy",
    "Models": (
        "Model ActionModel SequenceModel ExactModel Belief Completion Feedback Outlook Bernoulli Gaussian Categorical "
        "load_model check_model calibrate CalibrationConfig"
    ),
    "Training, tuning and logs": (
        "train preset_config RowSets tune TuneConfig Logs Roles read_logs evaluate_offline OfflineConfig"
    ),
    "Live use": "Live Decision read_decisions",
    "Checks and errors": "testing InputError",
}
MORE = "More"  # public names that no group above lists
ROLE = re.compile(r":(?:class|func|meth|mod|attr):(?=<code>)")
FIELD = re.compile(r"^    (\w+): ([^#=\n]+?)(?: = ([^#\n]+?))?  # (.+)$", re.MULTILINE)  # of a dataclass
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation, and those of docs/ that mkdocs.yml does not name."""
    sections = {title: pages for entry in config.nav for title, pages in entry.items()}
    sections["How-tos"] += _unnamed(sections)
    for setting in ("synthetic", "news"):
        names = sorted(path.name for path in (TOP / "docs" / "results" / setting).glob("*.md"))
        sections["Results"].append({f"The {setting} setting": [f"results/{setting}/{name}" for name in names]})
    groups = [{title: [{name: f"api/{name}.md"} for name in names]} for title, names in _groups().items()]
    config.nav += [
        {"API": ["api/index.md", *groups]},
        {
            "Project": [{title: f"project/{name.lower()}"} for name, title in PROJECT.items()]
            + [{"Examples": _examples()}]
        },
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {"api/index.md": _api_index()}
    pages |= {f"api/{name}.md": _api_page(name) for name in gents_gym.__all__}
    pages |= {f"project/{name.lower()}": (TOP / name).read_text() for name in PROJECT}
    for entry in _examples():
        ((name, address),) = entry.items()
        pages[address] = f"# {name}\n\n```python\n{(TOP / 'examples' / name).read_text()}```\n"
    for address, text in pages.items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files outside docs/ to the generated pages."""
    address = page.file.src_uri
    here = "" if address.startswith("project/") else posixpath.join("docs", posixpath.dirname(address))

    def lead(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match[1]))
        place = _place(target)
        if place is None:
            return match[0]
        return f"]({posixpath.relpath(place, posixpath.dirname(address) or '.')}{match[2] or ''})"

    return LINK.sub(lead, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Drop the roles of reStructuredText, as in :class:`Agent`, which Python's own help shows too."""
    return ROLE.sub("", html)


def _place(target: str) -> str | None:
    """Return the page of the site for a file of the repository; None if there is none."""
    if target in PROJECT:
        return f"project/{target.lower()}"
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if target.startswith("examples/"):
        return f"{target}.md" if target.endswith(".py") else "project/contributing.md"
    return "api/index.md" if target.startswith("gents_gym/") else None


def _examples() -> list[dict[str, str]]:
    folder = TOP / "examples"
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))
    return [{name: f"examples/{name}.md"} for name in names]


def _unnamed(sections: dict[str, Any]) -> list[str]:
    """Return the pages directly in docs/ that the navigation does not name."""
    named = repr(sections)
    pages = sorted(path.name for path in (TOP / "docs").glob("*.md"))
    return [page for page in pages if f"'{page}'" not in named and page != "api_examples.md"]


def _groups() -> dict[str, list[str]]:
    groups = {title: names.split() for title, names in GROUPS.items()}
    listed = {name for names in groups.values() for name in names}
    more = [name for name in gents_gym.__all__ if name not in listed]
    return {**groups, MORE: more} if more else groups


def _path(name: str) -> str:
    """Return where a public name is defined, also one that is loaded when it is first used."""
    found = getattr(gents_gym, name)
    return found.__name__ if inspect.ismodule(found) else f"{found.__module__}.{name}"


def _first_sentence(name: str) -> str:
    text = inspect.getdoc(getattr(gents_gym, name)) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _api_index() -> str:
    parts = ["# API reference\n\nEvery public name of `gents_gym`.\n"]
    for title, names in _groups().items():
        rows = "\n".join(f"| [`{name}`]({name}.md) | {_first_sentence(name)} |" for name in names)
        parts.append(f"## {title}\n\n| name | |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def _api_page(name: str) -> str:
    path, found = _path(name), getattr(gents_gym, name)
    example = _api_examples().get(name, "")
    parts = [f"# gents_gym.{name}\n", f"::: {path}\n"]
    if inspect.ismodule(found):
        parts[1] += "    options:\n      members: false\n"
        module = importlib.import_module(path)
        members = [f"{getattr(module, each).__module__}.{each}" for each in module.__all__]
        parts += [f"::: {each}\n" for each in members]
    if fields := FIELD.findall(inspect.getsource(found)) if dataclasses.is_dataclass(found) else []:
        rows = "\n".join(f"| `{each}` | {comment.replace('|', chr(92) + '|')} |" for each, _, _, comment in fields)
        parts.append(f"| field | |\n|---|---|\n{rows}\n")
    if example:
        parts.insert(1, f"{example}\n")
    return "\n".join(parts)


def _api_examples() -> dict[str, str]:
    """Return the section of docs/api_examples.md for each name, with the page's first lines that it needs."""
    text = (TOP / "docs" / "api_examples.md").read_text()
    first, *sections = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)
    lines = re.findall(r"^(?:import .*|\w+ = .*)$", first, flags=re.MULTILINE)
    return {name: _with_lines(lines, section) for name, section in zip(sections[::2], sections[1::2], strict=True)}


def _with_lines(lines: list[str], section: str) -> str:
    """Put the lines that define names of a section's code at its beginning."""
    names = [line.split(" = ")[0].split()[-1] for line in lines]
    defined = {name for name in names if f"{name} = " in section}
    needed = [
        line
        for line, name in zip(lines, names, strict=True)
        if name not in defined and re.search(rf"(?<![\w.\"]){name}\.", section)
    ]
    head = "\n".join(needed) + ("\n\n" if needed else "")
    return section.replace("```python\n", f"```python\n{head}", 1)
