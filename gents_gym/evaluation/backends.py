"""Provides the joblib backends that play cells: local processes, Ray or Dask; results arrive as they are ready."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from joblib import Parallel, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import register_parallel_backend

from gents_gym.checks import InputError, check_choice, check_integer, need

PACKAGES = {"local": None, "ray": "ray", "dask": "distributed"}  # what each backend needs besides joblib


def check_backend(backend: str, workers: int | None, address: str | None) -> None:
    """Raise unless ``backend`` is known and installed, and ``workers`` and ``address`` fit it."""
    package = PACKAGES[check_choice("backend", backend, PACKAGES)]
    if workers is not None:
        check_integer("workers", workers, 1)
    if address is not None and package is None:
        raise InputError(f"address must go with the backend ray or dask, got {address!r} with {backend!r}")
    if package is not None:
        need(package, f"backend {backend!r}", extra=backend)


@contextmanager
def open_backend(backend: str, workers: int | None, address: str | None) -> Iterator[Parallel]:
    """Yield the Parallel of a backend, and leave the cluster unchanged.

    Args:
        backend: "local" for processes here; "ray" or "dask".
        workers: How many cells are played at once; None: one per core.
        address: Address of a running Ray cluster or Dask scheduler; None: one is started here.
    """
    check_backend(backend, workers, address)
    starts = {"local": _local, "ray": _ray, "dask": _dask}
    with _told(backend, address):
        _reach(address)
    with (
        _safe_path(),
        starts[backend](workers, address) as options,
        parallel_config(n_jobs=workers or -1, **options),
    ):
        yield Parallel(return_as="generator_unordered", batch_size=1)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the current folder off the start of the path in processes started with ``python -m`` or ``-c``."""
    given = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if given is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = given


@contextmanager
def _told(backend: str, address: str | None) -> Iterator[None]:
    """Turn errors of the cluster's code about an address into one line."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        rule = f"address must be that of a running {backend} cluster, got {address!r}"
        raise InputError(f"{f'no {backend} cluster starts here' if address is None else rule} ({error})") from error


@contextmanager
def _local(workers: int | None, address: str | None) -> Iterator[dict[str, Any]]:
    try:
        # Joblib restarts a worker whose memory has grown, and warns of a leak when only a model was loaded.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
            yield {"backend": "loky", "inner_max_num_threads": 1}
    finally:
        # Joblib would keep the processes for its next call, with the modules and the path of this one.
        get_reusable_executor().shutdown(kill_workers=True)


@contextmanager
def _ray(workers: int | None, address: str | None) -> Iterator[dict[str, Any]]:
    import ray
    from ray.util.joblib.ray_backend import RayBackend

    class StreamingRay(RayBackend):  # type: ignore[misc]
        """Ray's joblib backend, with a callback for each result, so that results can be used one by one."""

        supports_return_generator = True

    register_parallel_backend("gents_gym-ray", StreamingRay)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ours = not ray.is_initialized()
    if ours:
        with _told("ray", address):
            # A dashboard would accept commands from any page in the browser.
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield {"backend": "gents_gym-ray"}
    finally:
        if ours:
            ray.shutdown()


@contextmanager
def _dask(workers: int | None, address: str | None) -> Iterator[dict[str, Any]]:
    from distributed import Client

    here = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with _told("dask", address):
        client = Client(**here) if address is None else Client(address)
    with client:
        yield {"backend": "dask"}


def _reach(address: str | None) -> None:
    """Raise if nothing listens at "host:port", which Ray would take minutes to report."""
    if address is None:
        return
    place = urlsplit(address if "//" in address else f"//{address}")
    if not place.hostname:
        raise ValueError("it names no host")
    if place.hostname and place.port:
        socket.create_connection((place.hostname, place.port), timeout=10).close()
