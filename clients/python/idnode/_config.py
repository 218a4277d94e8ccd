"""Where a client finds its cluster: URLs, the environment, and TLS by names of files."""

from __future__ import annotations

import logging
import os
import re
import ssl
import time
from typing import Any, Mapping
from urllib.parse import unquote

from ._locks import Lock

log = logging.getLogger("idnode")

_LOOKED_AT = 1.0  # Seconds from one look at the files to the next.
_PARAMETERS = {"tls-ca": "ca", "tls-cert": "cert", "tls-key": "key", "tls-server-name": "server_name"}
_URL = re.compile(r"idnode\+http://([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?")


class TLS:
    """TLS by names of PEM files, which are read again when they changed, so that certificates can be renewed.

    They are looked at when a connection is opened, at most once a second. What cannot be read leaves the old ones in use, with a
    warning in the log. Connections that are open go on.
    """

    def __init__(self, *, ca: str = "", cert: str = "", key: str = "", server_name: str = "") -> None:
        """Reads the files. Raises an OSError where that fails.

        Args:
            ca: The authorities to trust; empty means those of the system.
            cert: The client's certificate, with key, its private key.
            server_name: The name in the nodes' certificates, if it is not the endpoint's.
        """
        _together(cert, key)
        self._server_name = server_name
        self._ca, self._cert, self._key = ca, cert, key
        self._lock = Lock()
        self._looked_at = time.monotonic()
        self._read = self._versions()
        self._context = self._load()

    def __repr__(self) -> str:
        return f"TLS(ca={self._ca!r}, cert={self._cert!r}, key={self._key!r}, server_name={self._server_name!r})"

    def _unlock(self) -> None:
        """After a fork: another thread of the parent may have held the lock."""
        self._lock = Lock()

    def _fresh(self) -> ssl.SSLContext:
        """That of the files as they are now, for a new connection."""
        with self._lock:
            if time.monotonic() - self._looked_at >= _LOOKED_AT:
                self._looked_at = time.monotonic()
                self._look()
            return self._context

    def _look(self) -> None:
        try:
            versions = self._versions()
            if versions != self._read:
                self._context, self._read = self._load(), versions
                log.info("%r was read again", self)
        except (OSError, ValueError) as error:  # An ssl.SSLError is an OSError. A file may be half written: the next look tries again.
            log.warning("%r cannot be read again, and the old one is used: %s", self, error)

    def _versions(self) -> list[tuple[int, int, int]]:
        found = [os.stat(name) for name in (self._ca, self._cert, self._key) if name]
        return [(file.st_ino, file.st_mtime_ns, file.st_size) for file in found]

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca or None)
        if self._cert:
            context.load_cert_chain(self._cert, self._key)
        return context


def _together(cert: str, key: str, called: str = "{}") -> None:
    if bool(cert) != bool(key):
        missing = called.format("tls-key" if cert else "tls-cert")
        raise ValueError(f"a certificate and its key belong together: {missing} is missing")


def parse(url: str) -> dict[str, Any]:
    """The options of a client that a URL names, with those of TLS under ``tls``. Raises a ValueError that names what is wrong."""
    authority = re.sub(r"^[a-z+]*:?/*([^/?#]*).*", r"\1", url)
    if "@" in authority:
        raise ValueError("a URL of idnode has no user and no password")
    found = _URL.fullmatch(url.partition("#")[0])
    if not found:
        grpc = "idnode:// names gRPC addresses, and this client calls HTTP ones: " if url.startswith("idnode://") else ""
        raise ValueError(f"{grpc}a URL of idnode is idnode+http://HOST:PORT,HOST:PORT/DATABASE?PARAMETERS, not {url!r}")
    if "#" in url:
        raise ValueError(f"a URL of idnode has no fragment: {url!r}")
    if not found[1]:
        raise ValueError(f"the URL has no endpoints: {url!r}")
    path = (found[2] or "/")[1:]
    if "/" in path:
        raise ValueError(f"a URL of idnode has one database, not {path!r}")
    options: dict[str, Any] = {"endpoints": found[1].split(",")}
    if path:
        options["database"] = _decoded("the database", path)
    return {**options, **_parameters(found[3] or "")}


def _parameters(query: str) -> dict[str, Any]:
    given: dict[str, str] = {}
    for name, _, value in (part.partition("=") for part in query.split("&") if part):
        if name not in {*_PARAMETERS, "tls", "cluster-id"}:
            raise ValueError(f"an unknown parameter of the URL: {name}")
        if name in given or not value:
            raise ValueError(f"the parameter {name} of the URL has no value, or two")
        given[name] = _decoded(f"the parameter {name}", value)
    options: dict[str, Any] = {}
    if "cluster-id" in given:
        options["cluster_id"] = given["cluster-id"]
    if given.get("tls", "true") != "true":
        raise ValueError(f"the parameter tls of the URL is true, not {given['tls']!r}")
    files = {_PARAMETERS[name]: value for name, value in given.items() if name in _PARAMETERS}
    if files and "tls" not in given and "ca" not in files:
        raise ValueError("the URL has parameters of TLS, but neither tls-ca nor tls=true")
    if "tls" in given or files:
        _together(files.get("cert", ""), files.get("key", ""), "the parameter {} of the URL")
        options["tls"] = files
    return options


def _decoded(what: str, text: str) -> str:
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(f"{what} of the URL is not percent-encoded: {text!r}")
    return unquote(text, errors="strict")


def of_url(url: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a client. Those given win."""
    return _loaded({**parse(url), **given})


def of_environment(given: dict[str, Any], environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The options of a client. Those given win. Raises a ValueError where there are no endpoints."""
    endpoints = [endpoint.strip() for endpoint in environment.get("IDNODE_HTTP_ENDPOINTS", "").split(",") if endpoint.strip()]
    if not endpoints and "endpoints" not in given:
        raise ValueError("IDNODE_HTTP_ENDPOINTS is not set: it is the list of the nodes' HTTP addresses, as a:7402,b:7402")
    options: dict[str, Any] = {"endpoints": endpoints}
    for variable, option in ("IDNODE_DATABASE", "database"), ("IDNODE_CLUSTER_ID", "cluster_id"):
        if environment.get(variable):
            options[option] = environment[variable]
    variables = {f"IDNODE_{name.upper().replace('-', '_')}": option for name, option in _PARAMETERS.items()}
    files = {option: environment[variable] for variable, option in variables.items() if environment.get(variable)}
    if files and "ca" not in files and "tls" not in given:
        raise ValueError("there are variables of TLS, but no IDNODE_TLS_CA")
    return _loaded({**options, **({"tls": files} if files else {}), **given})


def _loaded(options: dict[str, Any]) -> dict[str, Any]:
    files = options.get("tls")
    return {**options, "tls": TLS(**files)} if isinstance(files, dict) else options
