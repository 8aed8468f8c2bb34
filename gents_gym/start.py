"""Prepares the interpreter if it was started as the command, before anything else of this package is imported.

``python -m`` puts the current folder first on the path, where its files would shadow our dependencies. Until the
command runs, an interrupt ends the process without a traceback.
"""

import os
import sys

FROM_MODULE = sys.argv[:1] == ["-m"]  # true while Python looks for the module of ``python -m gents_gym.cli``
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if FROM_MODULE and not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]
    if PACKAGE not in sys.path and os.getcwd() == PACKAGE:  # a checkout that is run in its own folder
        sys.path.append(PACKAGE)

if FROM_MODULE or os.path.basename(sys.argv[0] if sys.argv else "") in ("gents-gym", "gents-gym.exe"):
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
