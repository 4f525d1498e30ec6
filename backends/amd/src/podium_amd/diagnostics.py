"""What hipRTC said, in terms of the user's source: which line, with the line itself, or which kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.backend import Program, Target
from podium.errors import CompileError, Diagnostic
from podium.parts import compile_error, refused_name

from podium_amd.headers import missing_header
from podium_amd.hiprtc import Refused
from podium_amd.options import advice_on_flags

__all__ = ["explain", "parse_log"]

_HEAD = re.compile(
    r"(?P<file>[^\n]+?):(?P<line>\d+):(?P<column>\d+): (?P<severity>fatal error|error|warning|remark|note): "
    r"(?P<message>.*)"
)
_ERRORS = ("error", "fatal error")

# hipRTC puts name expressions behind the source, each as a variable, and its own folder in front of a file's name.
_NAME_LINE = re.compile(r'extern "C" constexpr auto __hiprtc_\d+ = &?(.*);')
_INCLUDED = re.compile(r"In file included from ([^\n]+?):(\d+):")
_OF_HOST = re.compile(r"/include/c\+\+/|^/usr/include/")
_LINKER = re.compile(r"(?m)^(?:ld\.)?lld: error: (.*)$")

_SHOWN = 4  # messages without a place


def parse_log(log: str) -> tuple[Diagnostic, ...]:
    """Read the messages of a log."""
    return tuple(diagnostic for diagnostic, _ in _messages(log))


def explain(refused: Refused, program: Program, target: Target) -> CompileError:
    """Make the error that users see out of what hipRTC said."""
    found = [*_of_host_headers(refused.log, program), *_translate(list(_messages(refused.log)), program)]
    otherwise = [_linker(match[1]) for match in _LINKER.finditer(refused.log)][:_SHOWN]
    if not otherwise:
        otherwise = [(refused.log.strip() or _without_log(refused.status, target)) + advice_on_flags(refused.log)]
    return compile_error(program, target, log=refused.log, diagnostics=found, otherwise=otherwise)


def _messages(log: str) -> Iterator[tuple[Diagnostic, str]]:
    """Give each message with the line of source that stands below it."""
    lines = log.split("\n")
    for number, line in enumerate(lines):
        match = _HEAD.fullmatch(line)
        if match is not None:
            source = lines[number + 1] if number + 1 < len(lines) else ""
            place = match["file"], int(match["line"]), int(match["column"])
            yield Diagnostic(*place, match["severity"], match["message"]), source.strip()


def _of_host_headers(log: str, program: Program) -> Iterator[Diagnostic]:
    """Give one message for each include of the user's that led into the host's own headers, and to errors there."""
    place: tuple[str, int] | None = None
    told: set[int] = set()
    lines = program.source.split("\n")
    for line in log.split("\n"):
        included, message = _INCLUDED.fullmatch(line), _HEAD.fullmatch(line)
        if included is not None:
            if included[1] == program.label:
                place = included[1], int(included[2])
        elif message is not None:
            is_hosts = _OF_HOST.search(message["file"]) and message["severity"] in _ERRORS
            if is_hosts and place is not None and place[1] not in told:
                told.add(place[1])
                header = lines[place[1] - 1].partition("include")[2].strip() if place[1] <= len(lines) else "it"
                yield Diagnostic(
                    *place,
                    1,
                    "error",
                    f"{header} is the host's own header, which is not for kernels. hipRTC has no C++ library, and a "
                    f"part of <type_traits> without a header: leave it out, or put it between #ifndef __HIPCC_RTC__ "
                    f"and #endif",
                )
            place = None


def _translate(found: list[tuple[Diagnostic, str]], program: Program) -> Iterator[Diagnostic]:
    """Turn messages about name expressions into messages about kernels and variables."""
    broken = any(each.severity in _ERRORS and not _NAME_LINE.fullmatch(source) for each, source in found)
    refused: set[str] = set()
    for each, source in found:
        match = _NAME_LINE.fullmatch(source)
        if _OF_HOST.search(each.file):  # `_of_host_headers` has told it
            continue
        if match is None:
            advice = missing_header(each.message) or _advice(each.message, source)
            if advice:
                each = Diagnostic(each.file, each.line, each.column, each.severity, f"{each.message}. {advice}")
            yield each
        elif not broken and match[1] not in refused and each.severity in _ERRORS:
            refused.add(match[1])
            unknown = "undeclared identifier" in each.message or "no member named" in each.message
            yield refused_name(match[1], each.message, program, unknown=unknown)


def _advice(message: str, source: str) -> str:
    if "podium_amd_has_no_managed_variables" in message:
        return "podium-amd has no __managed__ variables: use __device__ ones, which module.variable reaches"
    if "HIP_vector_type" in message and "operator" in message and "ambiguous" in message:
        return "HIP has operators for its vector types: leave these out for AMD, #ifndef __HIP__ ... #endif"
    if "reference to __host__ function" in message:
        return "Mark the function __device__"
    if re.search(r"\basm\b", source) and any(word in message for word in ("asm", "assembly", "instruction")):
        return (
            "Assembly in CUDA's text is PTX, which AMD's GPUs have not: #ifndef __HIP__ ... #endif, or write it in C++"
        )
    return ""


def _linker(message: str) -> str:
    if "undefined" in message:
        return f"{message}. Define it in the source: hipRTC links no other code"
    return message


def _without_log(status: str, target: Target) -> str:
    return f"hipRTC says {status} and no more, as it does for an architecture that it does not know: {target.arch}"
