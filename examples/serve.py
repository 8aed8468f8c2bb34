"""A live agent behind HTTP, on this machine alone: ``GENTS_GYM_TOKEN=secret python examples/serve.py decisions.db``.

Needs ``pip install "gents-gym[serve]"``. ``serve_client.py`` talks to it. One process serves a store; a second one is
refused. For other machines, put a proxy with TLS in front of it.
"""

import argparse
import os
import secrets
import sys
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import gents_gym


class Question(BaseModel):
    """A context to decide in."""

    context: list[float] | dict[str, float | str]  # numbers, or values by the names of the model's columns
    available: list[str] | None = None  # names of actions; None: all that are not retired
    stream: str = "main"
    votes: bool = False  # whether the probability is worth many times the time


class Outcome(BaseModel):
    """What came of a decision."""

    decision: int
    value: float


class Action(BaseModel):
    """An action that can be played from now on."""

    action: str
    features: list[float] | dict[str, float | str]
    stream: str = "main"


def make_app(live: gents_gym.Live, token: str) -> FastAPI:
    """Return the application; every request but /health needs the token."""

    def check(authorization: Annotated[str, Header()] = "") -> None:
        if not secrets.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            raise HTTPException(401, "the header must be 'Authorization: Bearer TOKEN', with the server's token")

    app, guarded = FastAPI(title="gents_gym"), [Depends(check)]

    @app.exception_handler(gents_gym.InputError)
    def refuse(request: Request, error: gents_gym.InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 400)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/decide", dependencies=guarded)
    def decide(asked: Question) -> gents_gym.Decision:
        return live.decide(asked.context, asked.available, votes=asked.votes, stream=asked.stream)

    @app.post("/outcome", dependencies=guarded)
    def outcome(given: Outcome) -> None:
        live.outcome(given.decision, given.value)

    @app.post("/actions", dependencies=guarded)
    def add(given: Action) -> None:
        live.add(given.action, given.features, stream=given.stream)

    @app.delete("/actions/{action}", dependencies=guarded)
    def retire(action: str, stream: str = "main") -> None:
        live.retire(action, stream=stream)

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="the SQLite file")
    parser.add_argument("--agent", default="ts-gen(m=64)")
    parser.add_argument("--model", default="filter")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    if not (token := os.environ.get("GENTS_GYM_TOKEN")):
        sys.exit("GENTS_GYM_TOKEN must be set to the token that clients will send")
    try:
        with gents_gym.Live(arguments.store, arguments.agent, arguments.model) as live:
            uvicorn.run(make_app(live, token), host="127.0.0.1", port=arguments.port, log_level="warning")
    except gents_gym.InputError as error:
        sys.exit(str(error))
