"""From a program to object code: through the cache, else through the driver's compiler."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from podium import _cache
from podium._hooks import CompileEvent, hooks
from podium._object_code import ObjectCode
from podium._program import Entry, Options, Program
from podium._record import record
from podium._signature import Signature, SignatureLike
from podium._target import Target
from podium._variable import DeclaredVariable
from podium.backend import Driver
from podium.errors import CompileError, LoadError, SourceError, ToolchainError

__all__ = [
    "Declaration",
    "compile_program",
    "declare",
    "discard_program",
    "included_headers",
    "may_have_variables",
    "read_module",
]

_OF_VARIABLES = ("__device__", "__constant__", "__managed__")


@record(frozen=True)
class Declaration:
    """One kernel of a source: its name expression, its signature, and the program that has just this kernel."""

    name: str
    signature: Signature
    program: Program


def declare(
    source: str,
    path: str | None,
    language: str,
    options: Options,
    name: str | None,
    signature: SignatureLike | None,
    constants: Mapping[str, object],
) -> Declaration:
    """Read the declaration of a kernel from its source. An explicit signature always wins over what is read.

    What was read is kept in the cache, so that a warm process does not parse. Raises `SourceError`.
    """
    explicit = Signature.parse(signature) if signature is not None else None
    if explicit is not None and name is not None and not constants:
        from podium._source import check_name_expression

        name, text, declared = check_name_expression(name), source, explicit
    elif language != "cuda":
        raise SourceError(f"The declaration of a kernel cannot be read from {language!r}: give name= and signature=")
    else:
        name, declared, text = _parse(source, name, constants, explicit, _macros(options))
    headers = included_headers(source, path, language, options)
    program = Program(text, language, (Entry(name, declared),), options, path, headers)
    return Declaration(name, declared, program)


def included_headers(source: str, path: str | None, language: str, options: Options) -> tuple[tuple[str, str], ...]:
    """Return the headers that a source includes, as `Program.headers` has them."""
    if language == "cuda" and ("include" in source or any(flag.startswith("-include") for flag in options.flags)):
        from podium._source import scan_includes

        return scan_includes(source, path, options.include_dirs, options.flags)
    return ()


def may_have_variables(source: str, options: Options) -> bool:
    """Tell whether there could be variables in a source, and so whether it must be read."""
    texts = (source, *(value for _, value in _macros(options)))
    return any(word in text for text in texts for word in _OF_VARIABLES)


def read_module(source: str, options: Options) -> tuple[tuple[DeclaredVariable, ...], tuple[Entry, ...]]:
    """Read the variables of a source and the kernels that surely are in it; what was read is kept in the cache.

    Raises `SourceError`.
    """
    defines = _macros(options)
    cache = _cache.default_cache()
    key = _cache.cache_key("declaration", "module", source, repr(defines))
    stored = cache.get(key)
    if stored is not None:
        try:
            fields = json.loads(stored)
            variables = tuple(DeclaredVariable(**each) for each in fields["variables"])
            return variables, tuple(Entry(name, Signature.parse(text)) for name, text in fields["kernels"])
        except (ValueError, KeyError, TypeError) as error:
            cache.quarantine(key, str(error))
    from podium._source import parse_module

    variables, kernels = parse_module(source, defines=defines)
    fields = {
        "variables": list(map(vars, variables)),
        "kernels": [(each.name, str(each.signature)) for each in kernels],
    }
    cache.put(key, json.dumps(fields).encode())
    return variables, kernels


def _macros(options: Options) -> tuple[tuple[str, str], ...]:
    """Give the macros that the compiler will know, those among its flags included."""
    flags = [flag[2:].partition("=") for flag in options.flags if flag.startswith("-D") and len(flag) > 2]
    return (*options.defines, *((name, value if equals else "1") for name, equals, value in flags))


def _parse(
    source: str,
    name: str | None,
    constants: Mapping[str, object],
    explicit: Signature | None,
    defines: tuple[tuple[str, str], ...],
) -> tuple[str, Signature, str]:
    """Return the name expression, the signature and the text to compile."""
    plain = all(type(value) in (bool, int, float) for value in constants.values())  # others have no sure text
    cache = _cache.default_cache()
    question = repr((name, sorted(constants.items(), key=str) if plain else None, str(explicit), defines))
    key = _cache.cache_key("declaration", source, question)
    stored = cache.get(key) if plain else None
    if stored is not None:
        try:
            fields = json.loads(stored)
            return fields["name"], Signature.parse(fields["signature"]), fields["source"]
        except (ValueError, KeyError, TypeError) as error:
            cache.quarantine(key, str(error))
    from podium._source import parse_kernel

    parsed = parse_kernel(source, name, dict(constants), explicit, defines=defines)
    if plain:
        fields = {"name": parsed.name, "signature": str(parsed.signature), "source": parsed.source}
        cache.put(key, json.dumps(fields).encode())
    return parsed.name, parsed.signature, parsed.source


def compile_program(driver: Driver, program: Program, target: Target) -> ObjectCode:
    """Compile for a target, or find the result in the cache. Needs no device.

    Raises `CompileError`, also for a language or a target that the backend does not take.
    """
    if target.backend != driver.name:
        raise CompileError(
            f"{program.label}: the target {target} is one of backend {target.backend!r}, and the driver that is to "
            f"compile is of {driver.name!r}: leave out the driver, or name one of its own targets",
            program=program.label,
            target=str(target),
        )
    if program.language not in driver.languages:
        raise CompileError(
            f"Backend {driver.name!r} does not compile {program.language!r}; "
            f"it takes: {', '.join(sorted(driver.languages))}",
            target=str(target),
        )
    start = time.perf_counter()
    kernels = ", ".join(entry.name for entry in program.entries)
    cache = _cache.default_cache()
    try:
        key = _program_key(driver, program, target)
        code = _cached(cache, key)
        cached = code is not None
        if code is None:
            code = driver.compile(program, target)
            if not _changed_headers(program):
                cache.put(key, code.to_bytes())
    except ImportError as error:
        raise ToolchainError(
            f"Backend {driver.name!r} cannot compile, since a module is missing or broken: {error}. If its package was "
            f"removed or upgraded while this process runs, restart the process"
        ) from error
    for function in hooks.compile.functions():
        function(CompileEvent(kernels, str(target), cached, time.perf_counter() - start, start))
    return code


def discard_program(driver: Driver, program: Program, target: Target, reason: str) -> bool:
    """Move the code of a program out of the cache, since it does not load; tell whether it was there."""
    cache = _cache.default_cache()
    key = _program_key(driver, program, target)
    if cache.get(key) is None:
        return False
    cache.quarantine(key, reason)
    return True


def _program_key(driver: Driver, program: Program, target: Target) -> str:
    return _cache.cache_key(
        "kernel",
        program.language,
        program.source,
        program.label,  # compiled into line information and messages
        repr([(entry.name, str(entry.signature)) for entry in program.entries]),
        repr([str(variable) for variable in program.variables]),
        program.options.key(),
        repr(program.headers),
        str(target),
        driver.toolchain(program.language),
    )


def _changed_headers(program: Program) -> bool:
    """Tell whether a header was edited since it was read for the key: the code would stand under a wrong one."""
    if not program.headers:
        return False
    from podium._source import scan_includes

    options = program.options
    return scan_includes(program.source, program.path, options.include_dirs, options.flags) != program.headers


def _cached(cache: _cache.Cache, key: str) -> ObjectCode | None:
    stored = cache.get(key)
    if stored is None:
        return None
    try:
        return ObjectCode.from_bytes(stored)
    except LoadError as error:
        cache.quarantine(key, str(error))
        return None
