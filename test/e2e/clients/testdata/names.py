"""Prints the public names of the client, and the parameters of what is called."""

import ast
import dataclasses
import inspect
import pathlib
import re

import idnode
import idnode.aio


def call(where, function, needs=True):
    parameters = list(inspect.signature(function).parameters.values())
    if needs:
        print(where, "needs", *[p.name for p in parameters if p.default is p.empty and "VAR" not in p.kind.name])
    for place, p in enumerate(parameters):
        by_place = p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        print(where, "takes", p.name, p.kind.name.lower(), place if by_place else "")


def members(kind):
    names = set(dir(kind)) | set(getattr(kind, "__annotations__", {}))
    for base in kind.__mro__:
        if base.__module__.startswith("idnode") and "__init__" in vars(base) and not dataclasses.is_dataclass(base):
            names |= set(re.findall(r"self\.([a-z]\w*)\b[^\n(]*=", inspect.getsource(base.__init__)))
    return names - set(dir(OSError))


def describe(where, value):
    if not inspect.isclass(value):
        return call(where, value) if callable(value) else print(where)
    own = members(value)
    for base in value.__mro__[1:]:
        if base in vars(idnode).values():
            print(where, "is", base.__name__)
            own -= members(base)
    if value.__name__ in ("Client", "RequestId", "TLS"):  # Callers make no others.
        call(where, value)
    for name in own:
        if name.startswith("_") and name not in ("__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__aiter__", "__next__"):
            continue
        if callable(getattr(value, name, None)):
            call(f"{where}.{name}", getattr(value, name))
        else:
            print(f"{where}.{name}")


for module in (idnode, idnode.aio):
    for name in module.__all__:
        describe(f"{module.__name__}.{name}", getattr(module, name))
for file in ("django", "sqlalchemy"):  # What they extend is not here.
    for node in ast.parse(pathlib.Path("idnode", file + ".py").read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            print(f"idnode.{file}.{node.name}")
