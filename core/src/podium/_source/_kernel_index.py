"""The kernels of a source by their qualified names, and how a name that a user writes finds one of them."""

from __future__ import annotations

from collections.abc import Iterable

from podium._record import field, record
from podium._source._kernel_head import KernelHead
from podium._source._name_expression import NameExpression
from podium._source._outline import Outline
from podium.errors import SourceError

__all__ = ["KernelGroup", "KernelIndex"]


@record
class KernelGroup:
    """Everything that declares one name: definitions and declarations, and what specialises or instantiates them."""

    path: tuple[str, ...]
    short_path: tuple[str, ...]  # without inline namespaces
    declarations: list[KernelHead] = field(default_factory=list)
    others: list[KernelHead] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "::".join(self.path)

    @property
    def deciding(self) -> list[KernelHead]:
        """The definitions; without any, the declarations."""
        return [head for head in self.declarations if head.body is not None] or self.declarations


class KernelIndex:
    """All kernels of an outline, in the order of their first declaration."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        groups: dict[tuple[str, ...], KernelGroup] = {}
        for head in outline.kernels:
            own = tuple(filter(None, head.name.partition("<")[0].split("::")))
            scopes = head.scope.path
            path = (*(scope.name for scope in scopes), *own)
            short = (*(scope.name for scope in scopes if not scope.is_open), *own)
            group = groups.setdefault(path, KernelGroup(path, short))
            (group.declarations if head.role == "kernel" else group.others).append(head)
        self.groups = [group for group in groups.values() if group.declarations]

    def only(self) -> KernelGroup:
        """Return the one kernel there is. Raises `SourceError` if there are none or several."""
        if len(self.groups) == 1:
            return self.groups[0]
        if not self.groups:
            raise self._none()
        raise SourceError(
            f"The source has {len(self.groups)} kernels; say which one is meant, such as "
            f'name="{self.groups[0].name}". They are: {self._listed(self.groups)}'
        )

    def find(self, name: NameExpression) -> KernelGroup:
        """Return the kernel that a name means; a part of a qualified name is enough if it is the end of just one.

        Raises `SourceError` listing the kernels.
        """
        wanted = (*name.scopes, name.base)
        found = [group for group in self.groups if wanted in (group.path, group.short_path)]
        if not found and not name.is_global:
            size = len(wanted)
            found = [group for group in self.groups if wanted in (group.path[-size:], group.short_path[-size:])]
        if len(found) == 1:
            return found[0]
        if found:
            raise SourceError(
                f"{name.qualified!r} is the name of {len(found)} kernels; say which is meant: {self._listed(found)}",
                kernel=name.text,
            )
        if not self.groups:
            raise self._none(name.text)
        names = {each: group.name for group in self.groups for each in (group.path[-1], group.name)}
        import difflib  # for errors only: a first launch must not pay for it

        close = difflib.get_close_matches(name.qualified, names, 1)
        hint = f" Did you mean {names[close[0]]!r}?" if close else ""
        shown = ("::" if name.is_global else "") + name.qualified
        raise SourceError(
            f"The source has no kernel {shown!r}.{hint} It has: {self._listed(self.groups)}", kernel=name.text
        )

    def _listed(self, groups: Iterable[KernelGroup]) -> str:
        text = self.outline.text
        shown = [f"{group.name} (line {text.line(group.deciding[0].declared[0])})" for group in groups]
        return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")

    def _none(self, name: str | None = None) -> SourceError:
        text = self.outline.text
        place = text.text.find("__global__")
        if place >= 0:
            line = text.line(place)
            return SourceError(
                f"The source has no kernel that podium can read: no complete function follows the __global__ in line "
                f"{line}. Is there a syntax error before or in it?",
                kernel=name,
                line=line,
            )
        return SourceError(
            "The source has no kernel, that is, no function declared __global__. podium does not see kernels in "
            "headers, nor those made by macros with parameters: give both name= and signature= for such a one",
            kernel=name,
        )
