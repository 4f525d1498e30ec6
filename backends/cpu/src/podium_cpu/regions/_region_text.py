"""The text of one region: a loop over the threads of a block, around the user's own statements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium_cpu.regions._pieces import Region
from podium_cpu.regions._plan import Plan
from podium_cpu.regions._rows import Guard, follows, guard
from podium_cpu.regions._storage import Storage
from podium_cpu.regions._syntax import Source, called_name, find, word
from podium_cpu.regions._variables import PURE, Unsupported, Variable

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["ALL_THREADS", "ROWS", "RegionWriter"]

ROWS = (
    "for (unsigned podium_z = 0; podium_z < podium_nz; ++podium_z)"
    " for (unsigned podium_y = 0; podium_y < podium_ny; ++podium_y) {"
    " const size_t podium_row = (podium_z * podium_ny + podium_y) * podium_nx; (void)podium_row;"
)
_THREADS = (
    " for (unsigned podium_x = 0; podium_x < podium_end; ++podium_x) {"
    " const uint3 threadIdx = {podium_x, podium_y, podium_z}; (void)threadIdx;"
    " const size_t podium_t = podium_row + podium_x; (void)podium_t;"
)
ALL_THREADS = _THREADS.replace("podium_end", "podium_nx")
_NUMBERS = re.compile(
    r"(?:(?:const|unsigned|signed|bool|char|short|int|long|float|double|size_t|u?int(?:8|16|32|64)_t)\s*)+"
)


class RegionWriter:
    """Writes regions of one function."""

    def __init__(self, source: Source, plan: Plan, *, independent: bool, global_index: bool) -> None:
        self._source = source
        self._plan = plan
        self._independent = independent  # whether compilers may be told that threads do not meet in memory
        self._global_index = global_index  # whether functions of the source look at the thread's index
        self._out: list[str] = []
        self._masks: list[str] = []
        self._count = 0
        self._last = plan.pieces[-1] if plan.pieces else None
        self._bases: dict[Variable, str] = {}  # the types of those that follow each other in the rows of a region
        self._returns = any(
            any(find(node, "return_statement", within=("lambda_expression",)))
            for region in plan.regions
            if region is not self._last  # where nobody asks who has returned
            for node in region.nodes
        )
        if self._returns:
            self._masks.append("podium_live")
        self._storage = Storage(plan)
        self._slots = self._storage.slots

    def _put(self, text: str) -> None:
        self._out.append(text)

    def _copy(self, start: int, end: int) -> None:
        self._put(self._source.marker(start) + self._source.text(start, end))

    def _mask(self) -> str:
        self._count += 1
        return f"podium_m{self._count}"

    def _condition(self) -> str:
        if not self._masks:
            return ""
        mask = self._masks[-1]
        return f"podium_all || {mask}[podium_t]" if mask == "podium_live" else f"{mask}[podium_t]"

    def _open(self, region: Region, masked: bool = True, rows: str = ROWS, end: str = "podium_nx") -> None:
        self._put(f" {rows}")
        self._base(region)
        if self._independent and self._is_independent(region):
            self._put("\n#pragma GCC ivdep\n")
        self._put(_THREADS.replace("podium_end", end))
        if self._global_index or self._asserts(region):
            self._put(" ::threadIdx.x = podium_x, ::threadIdx.y = podium_y, ::threadIdx.z = podium_z;")
        if masked:
            self._put(f" if ({self._condition()}) {{" if self._masks else " {")

    def _close(self) -> None:
        self._put(" } } }")

    def _base(self, region: Region) -> None:
        """Find where the variables begin that count the threads of a row."""
        storage, plan = self._storage, self._plan
        present = {*storage.foreign(region), *(v for v in plan.again if storage.is_home(v, region))}
        self._bases = {v: kind for v in present if (kind := follows(plan, v))}
        for variable, kind in sorted(self._bases.items(), key=lambda item: item[0].start):
            self._put(f" {kind} podium_b{variable.start}; {{ const uint3 threadIdx = {{0u, podium_y, podium_z}};")
            self._put(" (void)threadIdx;")
            self._again(variable.value)
            self._put(f" podium_b{variable.start} = ")
            if variable.value is not None:
                self._copy(variable.value.start_byte, variable.value.end_byte)
            self._put("; }")

    def _again(self, node: Node | None) -> None:
        """Declare what a pure expression is computed from."""
        for variable in self._storage.needed(node):
            if variable.declaration is not None and variable.declarator is not None:
                self._declare(variable.declaration, [variable.declarator])
                self._put(f"(void){variable.name};")

    def _guard(self, found: Guard) -> None:
        """Find how many threads of each row a condition holds for."""
        self._put(" const auto podium_front = [&](const unsigned podium_x, unsigned) -> bool {")
        self._put(" const uint3 threadIdx = {podium_x, podium_y, podium_z}; (void)threadIdx;")
        self._again(found.condition)
        self._put(f" return {'!' if found.leaves else ''}")
        self._copy(found.condition.start_byte, found.condition.end_byte)
        self._put("; }; const unsigned podium_end = podium_regions::reach(0u, 0u, podium_nx, podium_front);")

    @staticmethod
    def _asserts(region: Region) -> bool:
        return any(word(name) == "podium_cpu" for node in region.nodes for name in find(node, "namespace_identifier"))

    def _is_independent(self, region: Region) -> bool:
        """Tell whether all that a region touches is registers and memory in which its threads do not meet."""
        for variable, uses in self._storage.used(region).items():
            if (variable.dimensions and not variable.lasting) or any(u.kind in ("argument", "address") for u in uses):
                return False
        for node in region.nodes:
            if any(not PURE.fullmatch(called_name(call)) for call in find(node, "call_expression")):
                return False
            if any(find(node, "lambda_expression", "switch_statement", "return_statement")):
                return False
            for declaration in find(node, "declaration"):
                kind = " ".join(word(c) for c in declaration.children if "declarator" not in c.type and c.is_named)
                if not _NUMBERS.fullmatch(kind) or any(find(declaration, "array_declarator", "reference_declarator")):
                    return False
        return True

    def _region(self, region: Region, changes: dict[int, tuple[int, str]] | None = None) -> None:
        """Write a loop over the threads that runs statements; some parts of their text may be replaced."""
        for variable in self._slots:
            if self._storage.is_home(variable, region):
                self._declare_slots(variable)
        replaced = dict(changes or {})
        found = guard(self._plan, region, region is self._last)
        if found is not None:
            self._put(f" {ROWS}")
            self._guard(found)
            then = found.node.child_by_field_name("consequence")
            end = found.node.end_byte if found.leaves or then is None else then.start_byte
            replaced[found.node.start_byte] = (end, ";" if found.leaves else "")
            self._open(region, rows="", end="podium_end")
        else:
            self._open(region)
        for variable, kind in self._bases.items():
            if self._storage.is_home(variable, region) and variable.value is not None:
                text = f"podium_b{variable.start} + static_cast<{kind}>(podium_x)"
                replaced[variable.value.start_byte] = (variable.value.end_byte, text)
        self._bind(region)
        self._put(" {")
        label = f"podium_next_{region.number}"
        leaves = False
        for node in region.nodes:
            for each in find(node, "return_statement", within=("lambda_expression",)):
                if each.named_children:
                    raise Unsupported("it returns a value")
                if any(start <= each.start_byte < end for start, (end, _) in replaced.items()):
                    continue  # the guard has gone
                leaves = True
                clear = " = ".join(f"{mask}[podium_t]" for mask in self._masks)
                text = f"goto {label};" if region is self._last else f"{clear} = 0; podium_all = false; goto {label};"
                replaced[each.start_byte] = (each.end_byte, f"{{ {text} }}")
        for node in region.nodes:
            self._statement(node, replaced)
        self._store(region)
        self._put(" }")
        if leaves:
            self._put(f" {label}:;")
        self._close()
        if leaves and region is not self._last:
            # What the block does once is not done for nobody, and its loops end.
            self._put(" if (!podium_regions::any(podium_live, podium_nx * podium_ny * podium_nz)) return;")

    def _declare(self, declaration: Node, declarators: Sequence[Node]) -> None:
        """Write some of the variables of a declaration."""
        first = declaration.children_by_field_name("declarator")[0]
        kind = self._flat(declaration.start_byte, first.start_byte)
        self._put(" ")
        for declarator in declarators:
            self._put(f"{kind} {self._flat(declarator.start_byte, declarator.end_byte)}; ")

    def _statement(self, node: Node, replaced: dict[int, tuple[int, str]]) -> None:
        if node.type == "declaration":
            declarators = node.children_by_field_name("declarator")
            own = [each for each in declarators if not self._plan.is_declared_once(each)]
            if own != declarators:
                self._put(self._source.marker(node.start_byte))
                self._declare(node, own)
                return
        position = node.start_byte
        self._put(self._source.marker(position))
        for start in sorted(replaced):
            if node.start_byte <= start < node.end_byte:
                end, text = replaced[start]
                self._put(self._source.text(position, start) + text)
                position = end
        self._put(self._source.text(position, node.end_byte))
        if not node.type.endswith(("statement", "declaration", "loop")) and node.type != "preproc_call":
            self._put(";")

    def _declare_slots(self, variable: Variable) -> None:
        number, declaration, declarator = self._slots[variable], variable.declaration, variable.declarator
        if declaration is None or declarator is None:
            raise Unsupported(f"{variable.name} has no declaration")
        first = declaration.children_by_field_name("declarator")[0]
        if declarator.type == "init_declarator":
            declarator = declarator.child_by_field_name("declarator") or declarator
        kind = self._flat(declaration.start_byte, first.start_byte)
        before = self._flat(declarator.start_byte, variable.start)
        after = self._flat(variable.start + len(variable.name.encode()), declarator.end_byte)
        self._put(f" typedef {kind} {before}podium_t{number}{after};")
        self._put(f" podium_regions::slots<podium_t{number}> podium_s{number};")

    def _flat(self, start: int, end: int) -> str:
        return " ".join(self._source.plain[start:end].decode("utf-8", "surrogateescape").split())

    def _bind(self, region: Region, only: Node | None = None) -> None:
        """Declare the variables that a region, or only a part of it, uses and another one declares."""
        for variable in self._storage.foreign(region, only):
            if variable in self._slots:
                self._bind_slot(variable)
            elif variable in self._bases and only is None:
                kind, name = self._bases[variable], variable.name
                self._put(
                    f" const {kind} {name} = podium_b{variable.start} + static_cast<{kind}>(podium_x); (void){name};"
                )
            elif variable.declaration is not None and variable.declarator is not None:
                self._declare(variable.declaration, [variable.declarator])
                self._put(f"(void){variable.name};")

    def _bind_slot(self, variable: Variable) -> None:
        number = self._slots[variable]
        data = f"podium_s{number}.data[podium_t]"
        kind = f"decltype({variable.name})" if variable.declaration is None else f"podium_t{number}"
        if variable.declaration is None:
            kind = f"typename podium_regions::bare<{kind}>::type"
            self._put(f" {kind} podium_p{number} = {data}, &{variable.name} = podium_p{number};")
        else:
            self._put(f" {kind} {'&' if variable.dimensions else ''}{variable.name} = {data}; (void){variable.name};")

    def _store(self, region: Region) -> None:
        """Keep what a region has changed."""
        for variable, number in self._slots.items():
            if not self._storage.is_written(variable, region):
                continue
            if not variable.dimensions:
                self._put(f" podium_s{number}.data[podium_t] = {variable.name};")
            elif self._storage.is_home(variable, region):
                self._put(f" podium_regions::keep(podium_s{number}.data[podium_t], {variable.name});")
