"""The Python code of ``plugin.proto``, generated when it is first needed."""

from __future__ import annotations

import atexit
import functools
import importlib
import pathlib
import shutil
import sys
import tempfile
import types
import typing as t
import warnings

_PROTO = pathlib.Path(__file__).parent / "plugin.proto"


@functools.cache
def generated() -> tuple[types.ModuleType, types.ModuleType]:
    """The modules with the messages and with the service."""
    from grpc_tools import _protoc_compiler  # type: ignore[import-untyped]

    folder = tempfile.mkdtemp(prefix="plugin-proto-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    arguments = ["protoc", f"-I{_PROTO.parent}", f"-I{_includes()}", f"--python_out={folder}"]
    arguments += [f"--grpc_python_out={folder}", _PROTO.name]
    assert _protoc_compiler.run_main([argument.encode() for argument in arguments]) == 0
    sys.path.insert(0, folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module("plugin_pb2"), importlib.import_module("plugin_pb2_grpc")
    finally:
        sys.path.remove(folder)


def empty() -> t.Any:
    from google.protobuf import empty_pb2

    return empty_pb2.Empty()


def _includes() -> pathlib.Path:
    import grpc_tools

    return pathlib.Path(t.cast(str, grpc_tools.__file__)).parent / "_proto"
