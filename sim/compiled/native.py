"""Functions of this package as machine code in files: numba, which takes a second to load, is needed only to write a file."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DIGEST = 32  # bytes of a SHA-256


class Native:
    """A function of this package, compiled for the types of what it is called with: whole numbers, C-contiguous arrays, and named tuples
    of them. It returns a whole number and raises nothing.

    Machine code is in ``NUMBA_CACHE_DIR``, else beside the source, else in the user's cache directory. Where none of them can be
    written, it is made each time."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.loaded: dict[tuple[object, ...], tuple[Any, Callable[[Any], int]]] = {}

    def __call__(self, *given: Any) -> int:
        words: list[int] = []
        types = tuple(_type(item, words) for item in _flat(given))
        if types not in self.loaded:
            self.loaded[types] = _loaded(self._code(types, given))
        packed = (ctypes.c_int64 * len(words))(*words)
        return self.loaded[types][1](packed)

    def _code(self, types: tuple[object, ...], given: tuple[Any, ...]) -> bytes:
        made = _sources(), import_module("llvmlite").__version__, *_host(), self.module, self.name, types
        key = hashlib.sha256(repr(made).encode()).hexdigest()
        name = f"{self.module}.{self.name}-{key[:16]}.o"
        for folder in _folders():
            with suppress(OSError):
                kept = (folder / name).read_bytes()
                if hashlib.sha256(kept[DIGEST:]).digest() == kept[:DIGEST]:
                    return kept[DIGEST:]
        code = _compiled(getattr(import_module(f"{__package__}.{self.module}"), self.name), given)
        for folder in _folders():
            with suppress(OSError):
                _keep(folder, name, hashlib.sha256(code).digest() + code)
                break
        return code


def _flat(given: tuple[Any, ...]) -> Iterator[Any]:
    for item in given:
        if isinstance(item, tuple):
            yield from item
        else:
            yield item


def _type(item: Any, words: list[int]) -> object:
    """The type of an argument; what numba passes for it goes to ``words``."""
    if isinstance(item, int):
        words.append(item)
        return int
    if not (isinstance(item, np.ndarray) and item.flags.c_contiguous):
        raise TypeError(f"compiled code takes int and contiguous arrays alone, not {type(item).__name__}")
    words += (0, 0, item.size, item.itemsize, item.__array_interface__["data"][0], *item.shape, *item.strides)
    return item.dtype, item.ndim


def _folders() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield HERE / "__pycache__"
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringscope"


def _keep(folder: Path, name: str, content: bytes) -> None:
    """Written aside first: another process may read it meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{name}.{os.getpid()}"
    try:
        aside.write_bytes(content)
        aside.replace(folder / name)
    finally:
        aside.unlink(missing_ok=True)


@cache
def _sources() -> str:
    """Changes with any file of this package."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))).hexdigest()


@cache
def _llvm() -> Any:
    llvm = import_module("llvmlite.binding")
    with suppress(RuntimeError):  # newer versions do so themselves
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _host() -> tuple[str, str, str]:
    llvm = _llvm()
    return llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine() -> Any:
    _, cpu, features = _host()
    return _llvm().Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=3, codemodel="jitdefault", jit=True)


def _loaded(code: bytes) -> tuple[Any, Callable[[Any], int]]:
    """What holds the code in memory, and its function ``entry`` of one pointer to words."""
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("entry"))


OPTIONS = {"error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""No array is made inside, so arrays need no reference counts: counting them took nine tenths of the time."""


def _compiled(function: Callable[..., int], given: tuple[Any, ...]) -> bytes:
    """Machine code of the function, and of an ``entry`` that unpacks its arguments."""
    import numba

    make: Any = numba
    signature = tuple(make.typeof(item) for item in given)
    source = make.njit(signature, **OPTIONS)(function).inspect_llvm(signature)
    llvm = _llvm()
    (inner,) = (f for f in llvm.parse_assembly(source).functions if not f.is_declaration and f.linkage.name == "external")
    return bytes(_machine().emit_object(llvm.parse_assembly(source + _entry(inner))))


def _entry(inner: Any) -> str:
    """Numba's calling convention: where to put the result, where to put an exception, then the words."""
    lines, arguments = [], ["ptr %result", "ptr %error"]
    for i, argument in enumerate(list(inner.arguments)[2:]):
        lines += [f"%at{i} = getelementptr i64, ptr %words, i64 {i}", f"%word{i} = load i64, ptr %at{i}"]
        kind = str(argument.type)
        value = f"%word{i}"
        if kind == "ptr":
            value = f"%value{i}"
            lines.append(f"{value} = inttoptr i64 %word{i} to ptr")
        arguments.append(f"{kind} {value}")
    call = f'%status = call i32 @"{inner.name}"({", ".join(arguments)})'
    head = ["%result = alloca i64", "%error = alloca ptr", "store i64 0, ptr %result"]
    return "\n".join(["define i64 @entry(ptr %words) {", *head, *lines, call, "%value = load i64, ptr %result", "ret i64 %value", "}", ""])
