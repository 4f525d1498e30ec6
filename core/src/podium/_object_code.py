"""Compiled code: bytes with their format, target and metadata. It is what the cache holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podium._digest import sha256
from podium._program import Entry
from podium._record import field, record, replace
from podium._signature import Signature
from podium._target import Target
from podium._variable import Variable
from podium.errors import LoadError

__all__ = ["ObjectCode", "is_object_code"]

_MAGIC = b"podium object 1\n"


@record(frozen=True)
class ObjectCode:
    """Compiled bytes of one or more kernels.

    `format` names what the bytes are ("elf", "cubin", "hsaco", "ptx"), `entries` the kernels in them with their
    signatures, `variables` the variables that the host can reach. `symbols` maps the names of both to the names in the
    binary where the two differ.
    `metadata` has what the backend wants to keep with the code; it must survive JSON. `log` is what the compiler said.
    """

    code: bytes = field(repr=False)
    format: str
    target: Target
    entries: tuple[Entry, ...] = ()
    symbols: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    log: str = field(default="", repr=False)
    variables: tuple[Variable, ...] = ()

    def entry(self, name: str) -> Entry:
        """Return the entry of that name. Raises `LoadError` listing the names there are."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        names = ", ".join(entry.name for entry in self.entries) or "none"
        raise LoadError(f"No kernel {name!r} in this object code; it has: {names}", kernel=name)

    def symbol(self, name: str) -> str:
        """Return the name that a kernel or a variable has in the binary."""
        return self.symbols.get(name, name)

    @property
    def digest(self) -> str:
        """A digest of the bytes, in hexadecimal: two codes with the same one have the same bytes."""
        return sha256(self.code).hexdigest()

    def with_variables(self, variables: Mapping[str, Variable]) -> ObjectCode:
        """Return the code with further variables, which the bytes have but nobody has said so."""
        merged = {each.name: each for each in self.variables} | dict(variables)
        return replace(self, variables=tuple(merged.values())) if variables else self

    def to_bytes(self) -> bytes:
        """Serialise, metadata and code in one piece."""
        header = {
            "format": self.format,
            "target": str(self.target),
            "entries": [[entry.name, str(entry.signature)] for entry in self.entries],
            "symbols": dict(self.symbols),
            "metadata": dict(self.metadata),
            "log": self.log,
            "variables": [[variable.name, str(variable.type)] for variable in self.variables],
        }
        return _MAGIC + json.dumps(header, sort_keys=True).encode() + b"\n" + self.code

    @staticmethod
    def from_bytes(
        data: bytes,
        *,
        name: str | None = None,
        signature: object = None,
        format: str | None = None,
        target: Target | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> ObjectCode:
        """Read what `to_bytes` wrote; or take the bytes of a vendor's binary, with everything else given.

        A vendor's binary needs `name` (of the kernel in it), `signature`, `format` and `target`, which may be spelled,
        ``"nvidia:sm_90:32"``. Raises `LoadError` if the bytes are neither, `SignatureError` for a signature that is
        none, and ValueError for such a target.
        """
        data = bytes(data)
        if is_object_code(data):
            return _deserialise(data)
        missing = [
            word
            for word, value in {"name": name, "signature": signature, "format": format, "target": target}.items()
            if value is None
        ]
        if missing or name is None or format is None or target is None:
            raise LoadError(
                "These bytes are not podium object code. If they are a vendor's binary, "
                f"also give: {', '.join(missing)}"
            )
        target = Target.parse(target) if isinstance(target, str) else target
        entry = Entry(name, Signature.parse(signature))  # type: ignore[arg-type]
        return ObjectCode(data, format, target, (entry,), metadata=dict(metadata or {}))

    @staticmethod
    def from_file(path: str | Path, **attributes: Any) -> ObjectCode:
        """Read a file as `from_bytes` reads bytes; takes the same keywords."""
        return ObjectCode.from_bytes(Path(path).read_bytes(), **attributes)


def is_object_code(data: bytes) -> bool:
    """Tell whether some bytes begin as those of `ObjectCode.to_bytes` do."""
    return data.startswith(_MAGIC)


def _deserialise(data: bytes) -> ObjectCode:
    header_end = data.find(b"\n", len(_MAGIC))
    try:
        header = json.loads(data[len(_MAGIC) : header_end])
        return ObjectCode(
            code=data[header_end + 1 :],
            format=header["format"],
            target=Target.parse(header["target"]),
            entries=tuple(Entry(name, Signature.parse(text)) for name, text in header["entries"]),
            symbols=header["symbols"],
            metadata=header["metadata"],
            log=header["log"],
            variables=tuple(Variable.of(name, text) for name, text in header.get("variables", ())),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LoadError(f"The podium object code is damaged: {error}") from None
