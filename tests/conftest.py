"""What tests share: clean temporary folders, commands that run in this process, and pages in a browser."""

import html
import json
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from gents_gym import cli

# A shell starts background jobs with SIGINT ignored, and the commands that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def sb3_logs(tmp_path_factory):
    """Let stable-baselines3, which opens a folder per model, write into a folder that pytest cleans up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield


@pytest.fixture(autouse=True)
def forget_modules(tmp_path_factory):
    """Forget the modules that a test wrote and imported: the next one may write another of the same name."""
    before = set(sys.modules)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(written):
            del sys.modules[name]


@pytest.fixture
def run_command(monkeypatch):
    """A function that runs ``gents-gym`` with arguments in this process, and returns the exit status."""

    def run(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["gents-gym", *map(str, arguments)])
            patch.setattr(sys, "path", list(sys.path))
            try:
                cli.main()
            except SystemExit as stop:
                return stop.code
            return 0

    return run


@pytest.fixture(scope="session")
def open_page():
    """A function that opens a page in Chromium; tests that ask for it are skipped if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")

    def run(text, folder, script="", address="", width=1200):
        """Return the page as Chromium has it after its script and the one given, and what that put into ``seen``."""
        after = f"<pre id='seen'></pre><script>{{const seen = {{}}; {script}; "
        after += "document.getElementById('seen').textContent = JSON.stringify(seen);}</script></body>"
        head, _, tail = text.rpartition("</body>")
        (folder / "page.html").write_text(head + after + tail, encoding="utf-8")
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000",
            "--dump-dom", f"{(folder / 'page.html').as_uri()}{address}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=100)
        seen = re.search('<pre id="seen">(.*?)</pre>', done.stdout)[1]
        return done.stdout, json.loads(html.unescape(seen))

    return run
