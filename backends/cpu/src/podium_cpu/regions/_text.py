"""The text of a kernel that runs a whole block in one call: each region a loop over the threads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium_cpu.regions._pieces import Barrier, Block, Branch, Loop, Once, Piece, Region, Strided
from podium_cpu.regions._plan import UNSIGNED, Plan
from podium_cpu.regions._storage import Storage
from podium_cpu.regions._syntax import Source, called_name, find, word
from podium_cpu.regions._variables import PURE, Unsupported, Variable

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Writer"]

# What stands in front of the pieces. The names of the dialect are those of constants that compilers see through.
_BEGIN = (
    " podium_regions::whole_block = true;"
    " const unsigned podium_nx = ::blockDim.x & 2047, podium_ny = ::blockDim.y & 2047, podium_nz = ::blockDim.z & 2047;"
    " const uint3 blockIdx = {::blockIdx.x, ::blockIdx.y, ::blockIdx.z}; (void)blockIdx;"
    " const dim3 blockDim(podium_nx, podium_ny, podium_nz), gridDim(::gridDim.x, ::gridDim.y, ::gridDim.z);"
    " (void)blockDim; (void)gridDim;"
)
_ROWS = (
    "for (unsigned podium_z = 0; podium_z < podium_nz; ++podium_z)"
    " for (unsigned podium_y = 0; podium_y < podium_ny; ++podium_y) {"
    " const size_t podium_row = (podium_z * podium_ny + podium_y) * podium_nx; (void)podium_row;"
)
_THREADS = (
    " for (unsigned podium_x = 0; podium_x < podium_end; ++podium_x) {"
    " const uint3 threadIdx = {podium_x, podium_y, podium_z}; (void)threadIdx;"
    " const size_t podium_t = podium_row + podium_x; (void)podium_t;"
)
_ALL = _THREADS.replace("podium_end", "podium_nx")
_NUMBERS = re.compile(
    r"(?:(?:const|unsigned|signed|bool|char|short|int|long|float|double|size_t|u?int(?:8|16|32|64)_t)\s*)+"
)


class Writer:
    """Writes the body of one function from its plan."""

    def __init__(self, source: Source, plan: Plan, *, independent: bool, global_index: bool) -> None:
        self._source = source
        self._plan = plan
        self._independent = independent  # whether compilers may be told that threads do not meet in memory
        self._global_index = global_index  # whether functions of the source look at the thread's index
        self._out: list[str] = []
        self._masks: list[str] = []
        self._count = 0
        self._returns = any(
            any(find(node, "return_statement", within=("lambda_expression",)))
            for region in plan.regions
            for node in region.nodes
        )
        if self._returns:
            self._masks.append("podium_live")
        self._storage = Storage(plan)
        self._slots = self._storage.slots

    # ---- pieces ----

    def write(self) -> str:
        """Return the text of the whole body, braces included."""
        body = self._plan.body
        self._put("{" + _BEGIN)
        if self._returns:
            self._put(" unsigned char podium_live[1024]; bool podium_all = true; (void)podium_all;")
            self._put(" __builtin_memset(podium_live, 1, sizeof podium_live);")
        for variable, number in self._slots.items():
            if variable.declaration is None:
                self._put(f" podium_regions::slots<decltype({variable.name})> podium_s{number};")
                self._put(f" {_ROWS}{_ALL} podium_s{number}.data[podium_t] = {variable.name}; }} }}")
        self._sequence(self._plan.pieces)
        self._put(self._source.marker(body.end_byte - 1) + "}")
        return "".join(self._out)

    def _put(self, text: str) -> None:
        self._out.append(text)

    def _copy(self, start: int, end: int) -> None:
        self._put(self._source.marker(start) + self._source.text(start, end))

    def _sequence(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Region):
                self._region(piece)
            elif isinstance(piece, Once) and piece.only is None:
                self._copy(piece.node.start_byte, piece.node.end_byte)
            elif isinstance(piece, Once):
                self._put(self._source.marker(piece.node.start_byte))
                self._declare(piece.node, piece.only or [])
            elif isinstance(piece, Block):
                self._put(" {")
                self._sequence(piece.pieces)
                self._put(" }")
            elif isinstance(piece, Barrier):
                self._barrier(piece)
            elif isinstance(piece, Branch):
                self._branch(piece)
            elif isinstance(piece, Strided):
                self._strided(piece)
            else:
                self._loop(piece)

    def _branch(self, piece: Branch) -> None:
        if piece.condition is None:
            then = piece.node.child_by_field_name("consequence")
            self._copy(piece.node.start_byte, piece.node.end_byte if then is None else then.start_byte)
            self._put(" {")
            self._sequence(piece.then)
            self._put(" }")
            if piece.other:
                self._put(" else {")
                self._sequence(piece.other)
                self._put(" }")
            return
        name, other = self._mask(), self._mask()
        self._put(f" {{ unsigned char {name}[1024], {other}[1024]; unsigned {name}_n = 0, {other}_n = 0;")
        self._open(piece.condition, masked=False)
        self._put(f" const bool podium_in = {self._condition() or 'true'}; bool podium_c = false; if (podium_in) {{")
        self._bind(piece.condition)
        self._put(" podium_c = static_cast<bool>(")
        self._copy(piece.condition.nodes[0].start_byte, piece.condition.nodes[0].end_byte)
        self._put(");")
        self._store(piece.condition)
        self._put(f" }} {name}_n += {name}[podium_t] = podium_in && podium_c;")
        self._put(f" {other}_n += {other}[podium_t] = podium_in && !podium_c; }} }} (void){other}_n;")
        for mask, pieces in ((name, piece.then), (other, piece.other)):
            if pieces:
                self._put(f" if ({mask}_n) {{")
                self._masks.append(mask)
                self._sequence(pieces)
                self._masks.pop()
                self._put(" }")
        self._put(" }")

    def _loop(self, piece: Loop) -> None:
        node = piece.node
        body, condition = node.child_by_field_name("body"), node.child_by_field_name("condition")
        if body is None:
            raise Unsupported("a loop has no body")
        if not (piece.condition or piece.first or piece.update):
            self._copy(node.start_byte, body.start_byte)
            self._put(" {")
            self._sequence(piece.body)
            self._put(" }")
            if node.type == "do_statement" and condition is not None:
                self._copy(body.end_byte, node.end_byte)
            return
        mask = self._mask()
        self._put(f" {{ unsigned char {mask}[1024]; unsigned {mask}_n = 1; (void){mask}_n;")
        if piece.first is not None:
            self._region(piece.first)
        self._put(f" {_ROWS}{_ALL} {mask}[podium_t] = {self._condition() or 'true'}; }} }}")
        self._put(" for (;;) {")
        self._masks.append(mask)
        if node.type != "do_statement":
            self._leave(piece, mask)
        self._sequence(piece.body)
        if piece.update is not None:
            self._region(piece.update)
        if node.type == "do_statement":
            self._leave(piece, mask)
        self._masks.pop()
        self._put(" } }")

    def _leave(self, piece: Loop, mask: str) -> None:
        """Have each thread decide whether it stays in a loop, and end the loop when none does."""
        if piece.condition is None:
            return
        self._put(f" {mask}_n = 0;")
        self._open(piece.condition)
        self._bind(piece.condition)
        self._put(f" {mask}_n += {mask}[podium_t] = static_cast<bool>(")
        self._copy(piece.condition.nodes[0].start_byte, piece.condition.nodes[0].end_byte)
        self._put(");")
        self._store(piece.condition)
        self._close()
        self._put(f" if (!{mask}_n) break;")

    def _strided(self, piece: Strided) -> None:
        """Have all threads take each turn of a loop together, next to each other in memory."""
        self._put(f" {{ unsigned podium_any = 1; const {piece.type} podium_step = ")
        self._copy(piece.step.start_byte, piece.step.end_byte)
        self._put(f"; for ({piece.type} podium_u = 0; podium_any; podium_u += podium_step) {{ podium_any = 0;")
        # Unsigned numbers begin again past their end, where their thread has left the loop before.
        once = " && podium_i >= podium_u" if piece.type in UNSIGNED else ""
        self._put(f" const auto podium_in = [&](const {piece.type} podium_i) -> bool {{ const {piece.type} ")
        self._put(f"{piece.variable.name} = podium_i; return (")
        self._copy(piece.condition.start_byte, piece.condition.end_byte)
        self._put(f"){once}; }};")
        if piece.is_row:
            # The threads of a row have numbers that follow each other: those in front stay, and the others have left.
            self._put(f" {_ROWS} {piece.type} podium_first; {{ const uint3 threadIdx = {{0, podium_y, podium_z}};")
            self._put(" (void)threadIdx;")
            self._bind(piece.region, piece.start)
            self._put(" podium_first = ")
            self._copy(piece.start.start_byte, piece.start.end_byte)
            self._put(
                f"; }} podium_first += podium_u; const unsigned podium_end = podium_regions::reach<{piece.type}>("
            )
            self._put("podium_first, podium_nx, podium_in); podium_any |= podium_end;")
            self._open(piece.region, rows="", end="podium_end")
            self._bind(piece.region)
            self._put(f" const {piece.type} {piece.variable.name} = podium_first + {piece.type}(podium_x); {{")
        else:
            self._open(piece.region)
            self._bind(piece.region)
            self._put(f" const {piece.type} {piece.variable.name} = podium_u + (")
            self._copy(piece.start.start_byte, piece.start.end_byte)
            self._put(f"); const unsigned podium_is_in = podium_in({piece.variable.name});")
            self._put(" podium_any |= podium_is_in; if (podium_is_in) {")
        self._copy(piece.body.start_byte, piece.body.end_byte)
        self._put(" }")
        self._store(piece.region)
        self._close()
        self._put(" } }")

    def _barrier(self, piece: Barrier) -> None:
        name = called_name(piece.call)
        line, file = self._source.line(piece.node.start_byte)
        self._count += 1
        votes = f"podium_v{self._count}"
        if piece.vote is not None:
            sign = "==" if name.endswith("_and") else "!="
            self._put(f" unsigned {votes} = 0; (void){votes};")
            self._open(piece.vote)
            self._bind(piece.vote)
            self._put(f" {votes} += int(")
            self._copy(piece.vote.nodes[0].start_byte, piece.vote.nodes[0].end_byte)
            self._put(f") {sign} 0;")
            self._store(piece.vote)
            self._close()
        inner = [mask for mask in self._masks if mask != "podium_live"]
        if inner:
            live = "podium_live" if self._returns else "nullptr"
            threads = "podium_nx * podium_ny * podium_nz"
            self._put(f' podium_regions::meet({inner[-1]}, {live}, {threads}, "{name}()", "{file}", {line});')
        if piece.result is not None:
            ends = {"__syncthreads_count": "", "__syncthreads_or": " != 0", "__syncthreads_and": " == 0"}
            self._region(piece.result, {piece.call.start_byte: (piece.call.end_byte, f"int({votes}{ends[name]})")})

    # ---- regions ----

    def _mask(self) -> str:
        self._count += 1
        return f"podium_m{self._count}"

    def _condition(self) -> str:
        if not self._masks:
            return ""
        mask = self._masks[-1]
        return f"podium_all || {mask}[podium_t]" if mask == "podium_live" else f"{mask}[podium_t]"

    def _open(self, region: Region, masked: bool = True, rows: str = _ROWS, end: str = "podium_nx") -> None:
        self._put(f" {rows}")
        if self._independent and self._is_independent(region):
            self._put("\n#pragma GCC ivdep\n")
        self._put(_THREADS.replace("podium_end", end))
        if self._global_index or self._asserts(region):
            self._put(" ::threadIdx.x = podium_x, ::threadIdx.y = podium_y, ::threadIdx.z = podium_z;")
        if masked:
            self._put(f" if ({self._condition()}) {{" if self._masks else " {")

    def _close(self) -> None:
        self._put(" } } }")

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
        self._open(region)
        self._bind(region)
        self._put(" {")
        replaced = dict(changes or {})
        label = f"podium_next_{region.number}"
        leaves = False
        for node in region.nodes:
            for each in find(node, "return_statement", within=("lambda_expression",)):
                if each.named_children:
                    raise Unsupported("it returns a value")
                leaves = True
                clear = " = ".join(f"{mask}[podium_t]" for mask in self._masks)
                text = f"{{ {clear} = 0; podium_all = false; goto {label}; }}"
                replaced[each.start_byte] = (each.end_byte, text)
        for node in region.nodes:
            self._statement(node, replaced)
        self._store(region)
        self._put(" }")
        if leaves:
            self._put(f" {label}:;")
        self._close()

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
