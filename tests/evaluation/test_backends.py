"""Clusters, started here: they give the same bytes as a process of one's own."""

import json
import socket
import subprocess
import sys
import warnings
from dataclasses import asdict
from textwrap import indent

import pytest

from gents_gym import EvaluationConfig, InputError, evaluate
from gents_gym.evaluation.backends import check_backend, open_backend

SMALL = "gents_gym/Synthetic-v0(horizon=20, n_actions=3)"
CONFIG = EvaluationConfig(("linucb", "lints(prior=fitted)", "oracle"), (SMALL,), tasks=7, block=3, training_actions=30)

CLUSTERS = {  # how to start one of two nodes; in a process of its own, which ends with it
    "ray": (
        "from ray.cluster_utils import Cluster\n"
        "cluster = Cluster(initialize_head=True, head_node_args={'num_cpus': 1, 'include_dashboard': False})\n"
        "cluster.add_node(num_cpus=1)\n"
        "address = cluster.address"
    ),
    "dask": (
        "from distributed import LocalCluster\n"
        "cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)\n"
        "address = cluster.scheduler_address"
    ),
}


def snapshot(out):
    """Return the bytes of all files but the times."""
    return {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file() and p.parent.name != "times"}


@pytest.fixture
def alone(tmp_path):
    evaluate(CONFIG, tmp_path / "alone", workers=1)
    return snapshot(tmp_path / "alone")


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1]  # bound but not listening, so nobody else takes it and nobody answers


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_a_cluster_of_two_gives_the_same_bytes(tmp_path, alone, backend, package):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'gents-gym[{backend}]'")
    script = (
        "import json, sys\n"
        "from gents_gym import EvaluationConfig, evaluate\n"
        f"{CLUSTERS[backend]}\n"
        "config, out, backend = json.loads(sys.argv[1])\n"
        "evaluate(EvaluationConfig(**config), out, backend=backend, address=address)\n"
        "cluster.close() if backend == 'dask' else cluster.shutdown()\n"
    )
    arguments = json.dumps([asdict(CONFIG), str(tmp_path / "out"), backend])
    command = [sys.executable, "-c", f"if __name__ == '__main__':\n{indent(script, ' ')}", arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert snapshot(tmp_path / "out") == alone


@pytest.mark.parametrize(("backend", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_what_is_not_installed_is_told_before_anything_is_touched(tmp_path, monkeypatch, backend, package):
    monkeypatch.setitem(sys.modules, package, None)  # as Python marks what cannot be imported
    message = rf"backend '{backend}' needs the package '{package}': pip install 'gents-gym\[{backend}\]'"
    with pytest.raises(InputError, match=message):
        evaluate(CONFIG, tmp_path / "out", backend=backend)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("backend", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_an_address_where_nobody_listens(backend, package, free_port):
    pytest.importorskip(package)
    address = f"127.0.0.1:{free_port}"
    with (
        pytest.raises(
            InputError, match=rf"address must be that of a running {backend} cluster, got '{address}' \(.*refused"
        ),
        open_backend(backend, None, address),
    ):
        pass


@pytest.mark.parametrize(("backend", "package"), [("ray", "ray"), ("dask", "distributed")])
@pytest.mark.parametrize("address", ["", "foo"])
def test_what_is_no_address(backend, package, address):
    pytest.importorskip(package)
    message = rf"^address must be that of a running {backend} cluster, got '{address}' \("
    with pytest.raises(InputError, match=message), open_backend(backend, None, address):
        pass


def test_a_ray_cluster_that_starts_here_has_no_dashboard(monkeypatch):
    ray, given = pytest.importorskip("ray"), {}
    monkeypatch.setattr(ray, "init", lambda **options: given.update(options))
    with open_backend("ray", None, None):
        assert given["include_dashboard"] is False


def test_a_cluster_that_does_not_start_is_told(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def fail(**options):
        raise OSError("no port is free")

    monkeypatch.setattr(distributed, "Client", fail)
    with (
        pytest.raises(InputError, match=r"^no dask cluster starts here \(no port is free\)$"),
        open_backend("dask", None, None),
    ):
        pass


def test_bad_arguments():
    with pytest.raises(InputError, match="unknown backend 'rai'; did you mean 'ray'"):
        check_backend("rai", None, None)
    with pytest.raises(InputError, match="workers must be at least 1, got 0"):
        check_backend("local", 0, None)
    with pytest.raises(InputError, match="address must go with the backend ray or dask, got 'x:1' with 'local'"):
        check_backend("local", None, "x:1")


def test_joblibs_warning_of_workers_that_have_grown_is_not_shown():
    told = "A worker stopped while some jobs were given to the executor. This can be caused by a too short timeout"
    with open_backend("local", 1, None):
        warnings.warn(told, UserWarning, stacklevel=1)
    with pytest.warns(UserWarning, match="A worker stopped"):
        warnings.warn(told, UserWarning, stacklevel=1)
