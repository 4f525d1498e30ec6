"""The sanitizers that kernels can be built for, and the compiler's flags for them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from podium.backend import HostCompiler
from podium.errors import SettingError

from podium_cpu.arena import SHADOW

__all__ = ["NONE", "Sanitizers"]

_NAMES = ("address", "undefined")


@dataclass(frozen=True)
class Sanitizers:
    """Which sanitizers are on: "address" looks for accesses out of bounds, "undefined" for undefined behaviour.

    The compiler only puts calls before what is to be checked; what they call is a part of podium's runtime
    (runtime/sanitizer.h). So they need no library of the compiler's, and what they find does not end the process.
    """

    address: bool = False
    undefined: bool = False

    @staticmethod
    def of(text: str | None) -> Sanitizers:
        """Read names separated by commas; None stands for the variable PODIUM_CPU_SANITIZE.

        Raises ValueError for other names, `SettingError` if they are the variable's.
        """
        from_environment = text is None
        text = os.environ.get("PODIUM_CPU_SANITIZE", "") if text is None else text
        names = [name.strip() for name in text.split(",") if name.strip()] if isinstance(text, str) else [text]
        for name in names:
            if name not in _NAMES and from_environment:
                raise SettingError("PODIUM_CPU_SANITIZE", text, "address, undefined, or both with a comma")
            if name not in _NAMES:
                known = " and ".join(_NAMES) + (", and none of races" if name == "thread" else "")
                raise ValueError(f"sanitize={text!r}: there is no sanitizer {name!r}; there are {known}")
        return Sanitizers("address" in names, "undefined" in names)

    def __bool__(self) -> bool:
        return self.address or self.undefined

    def __str__(self) -> str:
        return ",".join(name for name, on in zip(_NAMES, (self.address, self.undefined)) if on)

    def flags(self, compiler: HostCompiler) -> list[str]:
        """Return the flags to compile a kernel with; not to link it, when compilers would add libraries for them."""
        clang = re.search(r"clang version (\d+)", compiler.version)
        flags = ["-g", "-gdwarf-4", "-fno-omit-frame-pointer"]
        if self.undefined:
            flags += ["-fsanitize=undefined", "-fno-sanitize=vptr", "-fno-sanitize=object-size"]
        if self.undefined and clang:
            flags.append("-fno-sanitize=function")
        if not self.address:
            return flags
        # That of operating-system kernels leaves to its user what is called and where the shadow lies. It leaves out
        # shared variables of templates, so indices are looked at as well.
        flags += ["-fsanitize=kernel-address", "-fsanitize=array-bounds" if clang else "-fsanitize=bounds"]
        settings = ["asan-stack=1", "asan-globals=1", "asan-instrumentation-with-call-threshold=0"]
        if not clang:
            return [*flags, f"-fasan-shadow-offset={SHADOW:#x}", *_each("--param", settings)]
        settings = [f"-{each}" for each in (*settings, f"asan-mapping-offset={SHADOW:#x}")]
        if int(clang[1]) >= 16:
            settings.append("-asan-kernel-mem-intrinsic-prefix=1")
        return [*flags, *_each("-mllvm", settings)]


def _each(option: str, values: list[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


NONE = Sanitizers()
