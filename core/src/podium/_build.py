"""The host's C and C++ compilers: found, identified for cache keys, and run in private folders.

Nothing here knows of kernels or devices. The subprocess modules are imported when a compiler runs, since a process
that finds everything in the cache never runs one.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from podium import _zig
from podium._build_folder import kill, private_folder, running
from podium._compiler_identity import COMMAND_VARIABLES, SEARCH_VARIABLES, Language
from podium._compiler_search import find_command, find_program
from podium._record import record
from podium.errors import CompileError, Diagnostic, ToolchainError

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["Build", "HostCompiler", "Language", "parse_diagnostics"]

_MAX_LOG = 1 << 20
_TIMEOUT = 600.0

_DIAGNOSTIC = (
    r"(?m)^(?P<file>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<message>.*)$"
)

# What a log says when the fault is not the source's.
_TROUBLES = (
    (
        r"No space left on device|Disk quota exceeded",
        "the disk of the temporary folder is full; free some, or set TMPDIR",
    ),
    (
        r"virtual memory exhausted|[Oo]ut of memory|Cannot allocate memory|Killed signal terminated|command: Killed",
        "it was killed or ran out of memory",
    ),
    (r"signal terminated program|command failed due to signal|internal compiler error", "the compiler itself crashed"),
    (r"cannot execute|error trying to exec|cannot find '?\bld\b|cannot find '?\bas\b", "a part of it is not installed"),
)


@record(frozen=True)
class Build:
    """What a run of a compiler gave: the bytes of its output file, and what it said, warnings included."""

    data: bytes
    log: str


@record(frozen=True)
class HostCompiler:
    """A compiler that runs on this machine. `command` is its program and the arguments that always go with it.

    `language` is None for a vendor's, whose code is for devices and not for the host. `programs` are the files whose
    change makes it another compiler: behind a prefix such as ccache, or a folder of links to it, stand several.
    """

    language: Language | None
    command: tuple[str, ...]
    programs: tuple[str, ...]

    @staticmethod
    def find(language: Language) -> HostCompiler:
        """Return the compiler in CC or CXX, else the first of cc, gcc, clang (c++, g++, clang++) on the search path.

        Where there is none of them, it is zig, if its package `ziglang` is installed. Raises `ToolchainError` that
        names the variable and the usual packages. It is looked for again after that, so that a compiler installed
        meanwhile is found.
        """
        chosen = os.environ.get(COMMAND_VARIABLES[language], "").strip()
        return _find(language, chosen, os.environ.get("PATH", os.defpath))

    @staticmethod
    def named(program: str, advice: str = "install it, or add its folder to PATH") -> HostCompiler:
        """Return a vendor's compiler that is a command: a path, or a name that is looked for on the search path.

        It takes flags, ``-o``, the output and the source, in this order, and ``--version``, and writes its messages, as
        gcc and clang do. So options stand before what they are about, as those of some commands must, and a subcommand,
        as in ``quern build -O2``, is the first of the flags. Raises `ToolchainError` that ends with the advice if there
        is none; it is looked for again after that.
        """
        return _find_named(program, advice, os.environ.get("PATH", os.defpath))

    @property
    def identity(self) -> str:
        """All that tells this compiler from another one, for cache keys: version, command, files, search variables.

        Its first line, the version and the command, is what `Driver.toolchain` can begin with.
        Costs a few microseconds once the version is known. Raises `ToolchainError` if the compiler is gone or broken.
        """
        variables = tuple((name, os.environ[name]) for name in SEARCH_VARIABLES if os.environ.get(name))
        return _identity(self, self._files(), variables)

    @property
    def is_identified(self) -> bool:
        """Whether its version is known already, so that `identity` starts no process."""
        return _known_version(self, self._files()) is not None

    @property
    def is_zig(self) -> bool:
        """Whether the compiler is zig, which is clang at heart and has other words for some options."""
        return _zig.is_zig(self.command)

    @property
    def version(self) -> str:
        """The first line that the compiler prints when asked for its version."""
        return _version(self, self._files())

    def compile(
        self,
        sources: Mapping[str, str],
        main: str,
        flags: Sequence[str] = (),
        *,
        objects: Mapping[str, bytes] | None = None,
        libraries: Sequence[str] = (),
        timeout: float = _TIMEOUT,
    ) -> bytes:
        """Compile one of some source files into a shared library and return its bytes.

        `sources` are texts by file name; they share a folder, so that `main` can include the others. `objects` are
        compiled already, and are linked to it; `libraries` are names to link with, such as "m". Raises `CompileError`
        with the log and the places it names, `ToolchainError` where the compiler rather than the source is at fault, or
        after `timeout` seconds.
        """
        shared = ["-shared"]
        if os.name != "nt":
            shared.append("-fPIC")
        if sys.platform == "darwin":
            # As everywhere else, symbols of the interpreter are found when the library is loaded.
            shared += ["-undefined", "dynamic_lookup"]
        return self.run(sources, main, [*flags, *shared], objects=objects, libraries=libraries, timeout=timeout).data

    def run(
        self,
        sources: Mapping[str, str],
        main: str,
        flags: Sequence[str],
        *,
        objects: Mapping[str, bytes] | None = None,
        libraries: Sequence[str] = (),
        timeout: float = _TIMEOUT,
    ) -> Build:
        """Run the compiler over `main` with exactly these flags and return what it wrote. Raises as `compile` does.

        `objects` are compiled already, by file name; they are linked behind `main`, or alone if `main` is one of them.
        """
        files = {name: text.encode("utf-8", "surrogateescape") for name, text in sources.items()}
        files.update(objects or {})
        with private_folder() as folder:
            try:
                for name, data in files.items():
                    if os.path.basename(name) != name or name.startswith(("-", ".")) or name == "output":
                        raise ValueError(f"{name!r} cannot be the name of a source file")
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(data)
            except OSError as error:
                raise ToolchainError(f"The source could not be written into the temporary folder: {error}") from None
            output = os.path.join(folder, "output")
            linked = [os.path.join(folder, name) for name in dict.fromkeys((main, *(objects or {})))]
            arguments = [*flags, "-o", output, *linked, *(f"-l{each}" for each in libraries)]
            status, log = self._execute(arguments, folder, timeout)
            if status != 0:
                raise self._failure(status, log, arguments, main, folder)
            try:
                with open(output, "rb") as file:
                    data = file.read()
            except OSError as error:
                raise ToolchainError(f"{self._title} reported success but left no output: {error}", log=log) from None
            if _is_cut_short(data):
                raise ToolchainError(
                    f"{self._title} reported success but left only a part of its output, {len(data)} bytes; is the "
                    f"folder of temporary files full? Make room, or set TMPDIR",
                    log=log,
                )
            return Build(data, _tidy(log, folder))

    def recall(self, sources: Mapping[str, str], main: str, flags: Sequence[str], key: str = "") -> bytes | None:
        """Return what `run_cached` has left in the disk cache for the same arguments, if it is there."""
        from podium._cache import default_cache

        return default_cache().get(self._cache_key(sources, main, flags, key))

    def run_cached(self, sources: Mapping[str, str], main: str, flags: Sequence[str], key: str = "") -> bytes:
        """Run the compiler as `run` does, and put what it wrote into the disk cache.

        `key` stands for everything else that changes the output, such as the contents of headers.
        """
        from podium._cache import default_cache

        data = self.run(sources, main, flags).data
        default_cache().put(self._cache_key(sources, main, flags, key), data)
        return data

    def _cache_key(self, sources: Mapping[str, str], main: str, flags: Sequence[str], key: str) -> str:
        from podium._cache import cache_key

        return cache_key("built", self.identity, repr((sorted(sources.items()), main, list(flags))), key)

    def _files(self) -> _Files:
        try:
            return tuple((path, *_fingerprint(path)) for path in self.programs)
        except OSError as error:
            _forget()
            raise ToolchainError(f"{self._title} is gone: {error}") from None

    @property
    def _title(self) -> str:
        variable = COMMAND_VARIABLES.get(self.language or "", "")
        words = " ".join(self.command)
        return f"The compiler {words!r}" + (f" (from {variable})" if os.environ.get(variable, "").strip() else "")

    def _execute(self, arguments: Sequence[str], folder: str, timeout: float) -> tuple[int, str]:
        import subprocess

        # In C, logs can be parsed; and what the compiler leaves when it is killed goes away with the folder.
        environment = {**os.environ, "LC_ALL": "C", "TMPDIR": folder, "TMP": folder, "TEMP": folder}
        environment.pop("LANGUAGE", None)
        if self.is_zig:
            environment.update(_zig.environment(folder))
        process: Popen[bytes] | None = None
        try:
            # In a session of its own it does not get the terminal's Ctrl-C, and it can be ended with its children.
            process = subprocess.Popen(
                [*self.command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
            running[folder] = process
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            kill(process)
            raise ToolchainError(f"{self._title} did not finish within {timeout:g} s and was stopped") from None
        except OSError as error:
            kill(process)
            _forget()
            raise ToolchainError(f"{self._title} could not be run: {error.strerror or error}") from None
        except BaseException:
            kill(process)
            raise
        return process.returncode, output.decode("utf-8", "replace")

    def _failure(self, status: int, log: str, arguments: Sequence[str], main: str, folder: str) -> CompileError:
        said = _tidy(log, folder)
        whole = f"$ {' '.join([*self.command, *arguments])}\n".replace(folder + os.sep, "") + said
        if status < 0:
            import signal

            name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
            hint = ", as happens when memory runs out" if name == "SIGKILL" else ""
            return ToolchainError(f"{self._title} was killed by {name}{hint}", log=whole)
        relevant = "\n".join(line for line in said.splitlines() if "#error" not in line)
        for pattern, trouble in _TROUBLES:
            if match := re.search(f"^.*(?:{pattern}).*$", relevant, re.MULTILINE):
                return ToolchainError(f"{self._title} failed: {trouble}: {match[0].strip()}", log=whole)
        diagnostics = parse_diagnostics(said)
        errors = [each for each in diagnostics if each.severity in ("error", "fatal error")]
        if errors:
            first = errors[0]
            text = f"{first.file}:{first.line}:{first.column}: {first.message}"
            if len(errors) > 1:
                text += f" (and {len(errors) - 1} more)"
        else:
            text = next((line.strip() for line in said.splitlines() if line.strip()), f"exit status {status}")
        return CompileError(f"{self.command[0]} could not compile {main}: {text}", log=whole, diagnostics=diagnostics)


def _is_cut_short(data: bytes) -> bool:
    """Tell whether an ELF file of 64 bits ends before the table of its sections, which linkers write last."""
    if data[:5] != b"\x7fELF\x02" or len(data) < 64:
        return data[:4] == b"\x7fELF"
    order: Literal["little", "big"] = "little" if data[5] == 1 else "big"
    table = int.from_bytes(data[40:48], order)
    size, count = (int.from_bytes(data[at : at + 2], order) for at in (58, 60))
    return table + size * count > len(data)


def parse_diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """Read the messages in the output of gcc or clang; a column that is not given is 1."""
    return tuple(
        Diagnostic(each["file"], int(each["line"]), int(each["column"] or 1), each["severity"], each["message"].strip())
        for each in re.finditer(_DIAGNOSTIC, log)
    )


# A failure raises, so lru_cache does not keep it.
@functools.lru_cache(maxsize=64)
def _find(language: Language, chosen: str, path: str) -> HostCompiler:
    command, programs = find_command(language, chosen, path)
    return HostCompiler(language, tuple(_zig.add_flags(command)), programs)


@functools.lru_cache(maxsize=64)
def _find_named(program: str, advice: str, path: str) -> HostCompiler:
    found = find_program(program, path)
    if found is None:
        raise ToolchainError(f"There is no compiler {program!r} on PATH: {advice}")
    return HostCompiler(None, (found,), (found,))


def _forget() -> None:
    """Look for compilers again: one that was found is gone."""
    _find.cache_clear()
    _find_named.cache_clear()


def _fingerprint(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


_Files = tuple[tuple[str, int, int, int], ...]


@functools.lru_cache(maxsize=64)
def _identity(compiler: HostCompiler, files: _Files, variables: tuple[tuple[str, str], ...]) -> str:
    rows = [f"{_version(compiler, files)} ({' '.join(compiler.command)})", f"command {compiler.command!r}"]
    rows += [f"file {path} {size} {mtime}" for path, size, mtime, _ in files]
    rows += [f"variable {name}={value}" for name, value in variables]
    return "\n".join(rows)


_versions: dict[tuple[HostCompiler, _Files], str] = {}


def _version(compiler: HostCompiler, files: _Files) -> str:
    """Ask the compiler for its version, once per machine: starting it would spoil each warm start."""
    known = _known_version(compiler, files)
    if known is not None:
        return known
    from podium._cache import default_cache

    with private_folder() as folder:
        status, output = compiler._execute(["--version"], folder, 60.0)
    line = next((each.strip() for each in output.splitlines() if each.strip()), "")
    if status != 0:
        raise ToolchainError(
            f"{compiler._title} cannot tell its version: {line or f'exit status {status}'}", log=output
        )
    default_cache().put(_version_key(compiler, files), line.encode())
    _versions[compiler, files] = line
    return line


def _known_version(compiler: HostCompiler, files: _Files) -> str | None:
    from podium._cache import default_cache

    known = _versions.get((compiler, files))
    if known is None and (kept := default_cache().get(_version_key(compiler, files))) is not None:
        known = _versions[compiler, files] = kept.decode("utf-8", "replace")
    return known


def _version_key(compiler: HostCompiler, files: _Files) -> str:
    from podium._cache import cache_key

    return cache_key("toolchain", repr((compiler.command, files)))


def _tidy(log: str, folder: str) -> str:
    text = log.replace(folder + os.sep, "")
    return text if len(text) <= _MAX_LOG else text[:_MAX_LOG] + "\n[the rest of the log is left out]\n"
