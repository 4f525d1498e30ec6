"""The text of a kernel that runs a whole block in one call: each region a loop over the threads."""

from __future__ import annotations

from collections.abc import Sequence

from podium_cpu.regions._groups import BLOCK_BARRIER, asks_by_rank
from podium_cpu.regions._pieces import (
    Barrier,
    Block,
    Branch,
    Loop,
    Once,
    Piece,
    Region,
    RowLoop,
    Strided,
    all_pieces,
)
from podium_cpu.regions._region_text import ALL_THREADS, ROWS, RegionWriter
from podium_cpu.regions._syntax import called_name
from podium_cpu.regions._variables import Unsupported

__all__ = ["Writer"]

# What stands in front of the pieces. The names of the dialect are those of constants that compilers see through.
_BEGIN = (
    " podium_regions::whole_block = true; const unsigned {sizes};"
    " const uint3 blockIdx = {::blockIdx.x, ::blockIdx.y, ::blockIdx.z}; (void)blockIdx;"
    " const dim3 blockDim(podium_nx, podium_ny, podium_nz), gridDim(::gridDim.x, ::gridDim.y, ::gridDim.z);"
    " (void)blockDim; (void)gridDim;"
)
_SIZES = "podium_nx = ::blockDim.x & 2047, podium_ny = ::blockDim.y & 2047, podium_nz = ::blockDim.z & 2047"
_ONE_ROW = "podium_nx = (::blockDim.x * ::blockDim.y * ::blockDim.z) & 2047, podium_ny = 1, podium_nz = 1"


class Writer(RegionWriter):
    """Writes the body of one function from its plan."""

    def write(self) -> str:
        """Return the text of the whole body, braces included."""
        body = self._plan.body
        self._put("{" + _BEGIN.replace("{sizes}", _ONE_ROW if self._is_one_row() else _SIZES))
        if self._returns:
            self._put(" unsigned char podium_live[1024]; bool podium_all = true; (void)podium_all;")
            self._put(" __builtin_memset(podium_live, 1, sizeof podium_live);")
        for variable, number in self._slots.items():
            if variable.declaration is None:
                self._put(f" podium_regions::slots<decltype({variable.name})> podium_s{number};")
                self._put(f" {ROWS}{ALL_THREADS} podium_s{number}.data[podium_t] = {variable.name}; }} }}")
        self._sequence(self._plan.pieces)
        self._put(self._source.marker(body.end_byte - 1) + "}")
        return "".join(self._out)

    def _is_one_row(self) -> bool:
        """Tell whether nobody sees it when all threads of the block lie along x."""
        body = self._plan.body
        seen = self._global_index or any(map(self._asserts, self._plan.regions))
        return not seen and asks_by_rank(self._source.text(body.start_byte, body.end_byte))

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
            elif isinstance(piece, RowLoop):
                self._row_loop(piece)
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
        # What the threads do that do not come to a barrier, as to return, they do before the others are there.
        sides = sorted(((name, piece.then), (other, piece.other)), key=lambda side: _meets(side[1]))
        for mask, pieces in sides:
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
        self._put(f" {ROWS}{ALL_THREADS} {mask}[podium_t] = {self._condition() or 'true'}; }} }}")
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
        self._put(" { unsigned podium_any = 1;")
        self._turns(piece)
        self._put(" for (; podium_any; podium_u = podium_regions::later(podium_u, podium_step)) { podium_any = 0;")
        if piece.is_row:
            self._put(f" {ROWS}")
            self._front(piece, piece.region)
            self._put(" podium_any |= podium_end;")
            self._open(piece.region, rows="", end="podium_end")
            self._bind(piece.region)
            self._place(piece)
        else:
            self._open(piece.region)
            self._bind(piece.region)
            self._put(f" const {piece.type} podium_start = (")
            self._copy(piece.start.start_byte, piece.start.end_byte)
            self._put(f"), {piece.variable.name} = podium_regions::later<{piece.type}>(podium_start, podium_u);")
            self._put(f" const unsigned podium_is_in = podium_in({piece.variable.name}, podium_start);")
            self._put(" podium_any |= podium_is_in; if (podium_is_in) {")
        self._copy(piece.body.start_byte, piece.body.end_byte)
        self._put(" }")
        self._store(piece.region)
        self._close()
        self._put(" } }")

    def _row_loop(self, piece: RowLoop) -> None:
        """Run a loop once for each row, with the threads of the row inside of it."""
        self._put(f" {ROWS} {{ const uint3 threadIdx = {{0u, podium_y, podium_z}}; (void)threadIdx;")
        self._again(piece.first)
        self._copy(piece.node.start_byte, piece.body.start_byte)
        self._put(" {")
        if piece.inner is None:
            self._open(piece.region, rows="")
            self._bind(piece.region)
            self._put(" {")
            self._copy(piece.body.start_byte, piece.body.end_byte)
        else:
            self._turns(piece.inner)
            self._put(" for (;; podium_u = podium_regions::later(podium_u, podium_step)) {")
            self._front(piece.inner, piece.region)
            self._put(" if (podium_end == 0) break;")
            self._open(piece.region, rows="", end="podium_end")
            self._bind(piece.region)
            self._place(piece.inner)
            self._copy(piece.inner.body.start_byte, piece.inner.body.end_byte)
        self._put(" }")
        self._store(piece.region)
        self._put(" } }")
        if piece.inner is not None:
            self._put(" }")
        self._put(" } } }")

    def _turns(self, piece: Strided) -> None:
        """Declare how far a strided loop has come, its step, and its condition."""
        self._put(f" {piece.type} podium_u = 0; const {piece.type} podium_step = ")
        self._copy(piece.step.start_byte, piece.step.end_byte)
        self._put(f"; const auto podium_in = [&](const {piece.type} podium_i, const {piece.type} podium_start) -> bool")
        self._put(f" {{ const {piece.type} {piece.variable.name} = podium_i; return (")
        self._copy(piece.condition.start_byte, piece.condition.end_byte)
        # Numbers begin again past their end, where their thread has left the loop before.
        self._put(") && podium_i >= podium_start; };")

    def _front(self, piece: Strided, region: Region) -> None:
        """Find how many threads of a row are still in a strided loop: their numbers follow each other."""
        self._put(f" {piece.type} podium_first; {{")
        self._put(" const uint3 threadIdx = {0u, podium_y, podium_z}; (void)threadIdx;")
        self._bind(region, piece.start)
        self._put(" podium_first = ")
        self._copy(piece.start.start_byte, piece.start.end_byte)
        self._put(f"; }} const unsigned podium_end = podium_regions::reach<{piece.type}>(")
        self._put("podium_first, podium_u, podium_nx, podium_in);")
        self._put(" podium_first = podium_regions::later(podium_first, podium_u);")

    def _place(self, piece: Strided) -> None:
        index = f"podium_first + static_cast<{piece.type}>(podium_x)"
        self._put(f" const {piece.type} {piece.variable.name} = {index}; {{")

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
            what = "sync() of a thread_block" if name == BLOCK_BARRIER else f"{name}()"
            self._put(f' podium_regions::meet({inner[-1]}, {live}, {threads}, "{what}", "{file}", {line});')
        if piece.result is not None:
            ends = {"__syncthreads_count": "", "__syncthreads_or": " != 0", "__syncthreads_and": " == 0"}
            self._region(piece.result, {piece.call.start_byte: (piece.call.end_byte, f"int({votes}{ends[name]})")})


def _meets(pieces: list[Piece]) -> bool:
    return any(isinstance(piece, Barrier) for piece in all_pieces(pieces))
