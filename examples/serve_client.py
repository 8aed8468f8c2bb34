"""A client of ``serve.py`` in plain Python: ``GENTS_GYM_TOKEN=secret python examples/serve_client.py``."""

import argparse
import json
import os
import random
from typing import Any
from urllib.request import Request, urlopen


class Client:
    """Sends JSON to the server, and returns its answers; an error status raises an HTTPError."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, **body: Any) -> Any:
        """Send one request."""
        data = json.dumps(body).encode() if body else None
        with urlopen(Request(self._url + path, data, self._headers, method=method), timeout=60) as answer:
            return json.load(answer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--horizon", type=int, default=50, help="visitors")
    arguments = parser.parse_args()
    client, clicks = Client(arguments.url, os.environ["GENTS_GYM_TOKEN"]), 0
    print(client("GET", "/health"))
    for i in range(3):
        client("POST", "/actions", action=f"item-{i}", features=[float(i), 1.0])
    for _ in range(arguments.horizon):
        visitor = [random.gauss(0, 1) for _ in range(5)]
        decision = client("POST", "/decide", context=visitor)
        click = int(decision["action"] == "item-1" or visitor[0] > 1)
        client("POST", "/outcome", decision=decision["id"], value=click)
        clicks += click
    client("DELETE", "/actions/item-0")
    print(f"clicks per visitor: {clicks / arguments.horizon:.2f}")
