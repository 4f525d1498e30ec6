"""What NVRTC said, in terms of the user's source: which line, with the line itself, or which kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.backend import Program, Target
from podium.errors import CompileError, Diagnostic
from podium.parts import compile_error, refused_name

from podium_nvidia.headers import missing_header
from podium_nvidia.nvrtc import Refused
from podium_nvidia.options import advice_on_flags

__all__ = ["explain", "parse_log"]

_HEAD = re.compile(
    r"(?P<file>[^\n]*?)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|internal error|error|warning|remark|note)(?: #[\w-]+)?: (?P<message>.*)"
)
_SEVERITIES = {"catastrophic error": "fatal error", "internal error": "fatal error"}
_ERRORS = ("error", "fatal error")

# The assembler behind the compiler has no lines of the source to tell.
_ASSEMBLER = re.compile(r"(?m)^ptxas [^\n]*?(?:error|fatal)\s*: (.*)$")

# Where NVRTC puts name expressions; behind the words stands the expression.
_NAME_MAP = "__nv_name_map"
_NAME_LINE = re.compile(r"#pragma nv_mangled_name &?(.*)")

_INDENT = 2  # of the line of source below a message

_SHOWN = 4  # messages without a place


def parse_log(log: str) -> tuple[Diagnostic, ...]:
    """Read the messages of a log."""
    return tuple(diagnostic for diagnostic, _ in _messages(log))


def explain(refused: Refused, program: Program, target: Target) -> CompileError:
    """Make the error that users see out of what NVRTC said."""
    found = list(_translate(_messages(refused.log), program))
    otherwise = [_assembler(match[1]) for match in _ASSEMBLER.finditer(refused.log)][:_SHOWN]
    if not otherwise:
        otherwise = [(refused.log.strip() or refused.status) + advice_on_flags(refused.log, program.options.std)]
    return compile_error(program, target, log=refused.log, diagnostics=found, otherwise=otherwise)


def _messages(log: str) -> Iterator[tuple[Diagnostic, str]]:
    """Give each message with the line of source that stands below it."""
    lines = log.split("\n")
    for number, line in enumerate(lines):
        match = _HEAD.fullmatch(line)
        if match is None:
            continue
        source = caret = ""
        if number + 2 < len(lines) and lines[number + 2].strip() == "^":
            source, caret = lines[number + 1], lines[number + 2]
        column = max(1, len(caret) - _INDENT) if caret else 1
        severity = _SEVERITIES.get(match["severity"], match["severity"])
        yield Diagnostic(match["file"], int(match["line"]), column, severity, match["message"]), source.strip()


def _translate(messages: Iterator[tuple[Diagnostic, str]], program: Program) -> Iterator[Diagnostic]:
    """Turn messages about name expressions into messages about kernels and variables."""
    found = list(messages)
    broken = any(each.severity in _ERRORS and each.file != _NAME_MAP for each, _ in found)
    refused: set[str] = set()
    for each, source in found:
        if each.file != _NAME_MAP:
            advice = missing_header(each.message) or _advice(each.message, source)
            if advice:
                each = Diagnostic(each.file, each.line, each.column, each.severity, f"{each.message}. {advice}")
            yield each
            continue
        match = _NAME_LINE.fullmatch(source)
        if broken or match is None or match[1] in refused or each.severity not in _ERRORS:
            continue
        refused.add(match[1])
        unknown = "undefined" in each.message or "has no member" in each.message
        yield refused_name(match[1], f"{each.message}{_advice_on_name(each.message)}", program, unknown=unknown)


def _advice_on_name(message: str) -> str:
    return ". Give each of them a name of its own" if "overloaded function" in message else ""


def _advice(message: str, source: str) -> str:
    if "host functions are not allowed in JIT mode" in message or "__host__ function is not allowed" in message:
        if re.search(r"\bmain\s*\(|<<<", source):
            return "The text of a kernel is device code only: what launches it is Python, kernel[grid, block](...)"
        return "Mark the function __device__, or leave code for the host out: #ifndef __CUDACC_RTC__ ... #endif"
    return ""


def _assembler(message: str) -> str:
    match = re.search(r"Instruction '(\S+)' (?:not supported on|cannot be compiled for)", message)
    if match:
        return (
            f"ptxas: {message}. Instructions of one architecture alone need its letter: "
            f"flags=['-arch=sm_90a'], or a target such as nvidia:sm_90a:32"
        )
    if "too much shared data" in message:
        return f"ptxas: {message}. More is had as dynamic shared memory: extern __shared__, and shared= at the launch"
    if "Unresolved extern function" in message:
        return f"ptxas: {message}. Define it in the source, or link the code that has it: podium_nvidia.link"
    return f"ptxas: {message}"
