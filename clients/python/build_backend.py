"""Builds the package as setuptools does, and the wheel of an unpacked sdist without it: pip installs that without a network.

All files of that wheel get the time SOURCE_DATE_EPOCH, in seconds since 1970 UTC, or else 1 January 1980, the earliest of a zip.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
import zipfile
from email.parser import HeaderParser
from typing import Any

_SETUPTOOLS = ["setuptools>=61", "wheel"]


def _unpacked() -> bool:
    return os.path.exists("PKG-INFO")  # setuptools has put it into the sdist.


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [] if _unpacked() else _SETUPTOOLS


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    return _SETUPTOOLS


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    from setuptools import build_meta

    return str(build_meta.build_sdist(sdist_directory, config_settings))


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    if not _unpacked():
        from setuptools import build_meta

        return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))
    with open("PKG-INFO", encoding="utf-8") as file:
        metadata = file.read()
    name = f"idnode-{HeaderParser().parsestr(metadata)['Version']}"
    files = {f"idnode/{file}": os.path.join("idnode", file) for file in sorted(os.listdir("idnode")) if file.endswith((".py", ".typed"))}
    files[f"{name}.dist-info/LICENSE"] = "LICENSE"
    parts = {path: open(source, "rb").read() for path, source in files.items()}
    parts[f"{name}.dist-info/METADATA"] = metadata.encode()
    parts[f"{name}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: idnode\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = f"{name}.dist-info/RECORD"
    lines = [f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in parts.items()]
    parts[record] = "".join([*lines, f"{record},,\n"]).encode()
    at = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 315532800)))[:6]
    with zipfile.ZipFile(os.path.join(wheel_directory, f"{name}-py3-none-any.whl"), "w") as wheel:
        for path, data in parts.items():
            entry = zipfile.ZipInfo(path, at)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data)
    return f"{name}-py3-none-any.whl"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
