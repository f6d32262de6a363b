"""The executor of a Dask cluster for `gibo train --dask`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gibo.errors import InputError, missing_extra

if TYPE_CHECKING:
    from concurrent.futures import Executor

# Seconds to wait for the scheduler's answer.
DASK_TIMEOUT = 10


@contextmanager
def dask_executor(address: str | None, files: dict[str, str | None]) -> Iterator[Executor]:
    """The executor of a Dask cluster.

    Args:
        address: of its scheduler.
        files: for TLS: ca, cert and key, each None if it is not given.
    """
    _check_dask(address, files)
    assert address is not None
    try:
        import distributed
        from distributed.comm.core import CommClosedError
    except ImportError:
        raise missing_extra("--dask needs distributed", "dask") from None
    security = _security(files) if address.startswith("tls://") else None
    try:
        client: Any = distributed.Client(address, timeout=DASK_TIMEOUT, security=security)  # type: ignore[no-untyped-call]
    except CommClosedError as error:
        raise InputError(
            f"--dask: the connection to {address} was closed; expected a scheduler, with TLS if and only if the "
            f"address begins with tls://, and with certificates of the same authority as ours: {error}"
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"--dask: no scheduler answers at {address}: {error}") from None
    with client:
        yield client.get_executor()


def _check_dask(address: str | None, files: dict[str, str | None]) -> None:
    missing = [f"--dask-{name}" for name, file in files.items() if file is None]
    if len(missing) == len(files):
        return
    if missing:
        raise InputError(f"--dask-ca, --dask-cert, --dask-key: expected all three, {' and '.join(missing)} is missing")
    if address is None or not address.startswith("tls://"):
        raise InputError(f"--dask: expected tls://HOST:PORT together with certificates, got {address or 'nothing'}")


def _security(files: dict[str, str | None]) -> Any:
    """The client's TLS settings, from the given files or else from Dask's configuration."""
    from distributed.security import Security

    given = {}
    if files["ca"] is not None:
        given = {"tls_ca_file": files["ca"], "tls_client_cert": files["cert"], "tls_client_key": files["key"]}
    security: Any = Security(require_encryption=True, **given)  # type: ignore[no-untyped-call]
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except OSError as error:
        raise InputError(
            "--dask-ca, --dask-cert, --dask-key: expected a certificate, a certificate, and its private key "
            f"as PEM files that can be read: {error}"
        ) from None
    if context is None:
        raise InputError("--dask tls://...: needs --dask-ca, --dask-cert and --dask-key (see docs/cluster.md)")
    return security
