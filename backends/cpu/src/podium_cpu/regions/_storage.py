"""Where the variables of a kernel that is taken apart live: in a region, in the block, or once for each thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium_cpu.regions._pieces import Region, Strided, all_pieces
from podium_cpu.regions._plan import Plan
from podium_cpu.regions._syntax import find
from podium_cpu.regions._variables import Unsupported, Use, Variable

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Storage"]


class Storage:
    """What each region of a plan uses, and which variables outlive theirs.

    `slots` numbers the variables that need an element for each thread. Raises `Unsupported` where none will do.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        spans = sorted((node.start_byte, node.end_byte, region) for region in plan.regions for node in region.nodes)
        self._spans = spans
        self._uses: dict[Region, dict[Variable, list[Use]]] = {region: {} for region in plan.regions}
        self._homes: dict[Variable, Region | None] = {}
        self.slots: dict[Variable, int] = {}
        once = {v for v in plan.variables.all if v.lasting or v in plan.uniform}
        for piece in all_pieces(plan.pieces):
            if isinstance(piece, Strided):
                once.add(piece.variable)
        self._again = plan.again - once
        for variable in plan.variables.all:
            self._settle(variable, variable in once)
        for region in plan.regions:
            self._check_pointers(region)

    def _region_at(self, offset: int) -> Region | None:
        found = None
        for start, end, region in self._spans:
            if start > offset:
                break
            if offset < end:
                found = region  # the innermost begins last
        return found

    def _settle(self, variable: Variable, once: bool) -> None:
        is_parameter = variable.declaration is None and not variable.bound
        home = self._homes[variable] = None if is_parameter else self._region_at(variable.start)
        regions = set()
        for use in variable.uses:
            region = self._region_at(use.start)
            regions.add(region)
            if region is not None:
                self._uses[region].setdefault(variable, []).append(use)
        if once:
            return
        if None in regions:
            raise Unsupported(f"{variable.name} is used where the block is, and may differ between threads")
        if not is_parameter and home is None:
            raise Unsupported(f"{variable.name} is declared outside of all regions")
        if regions <= {home}:
            return
        if variable.bound:
            raise Unsupported(f"{variable.name} is a reference that outlives a region")
        if variable not in self._again:
            self._check_type(variable)
            self.slots[variable] = len(self.slots)

    @staticmethod
    def _check_type(variable: Variable) -> None:
        if variable.declaration is None:
            return
        kinds = {child.type for child in variable.declaration.children}
        if kinds & {"placeholder_type_specifier", "decltype", "struct_specifier", "class_specifier", "union_specifier"}:
            raise Unsupported(f"{variable.name} has a type without a name")
        for part in find(variable.declarator or variable.declaration, "array_declarator"):
            if part.child_by_field_name("size") is None:
                raise Unsupported(f"{variable.name} is an array without a size")

    def _check_pointers(self, region: Region) -> None:
        """Refuse what may keep the address of a variable that is somewhere else in the next region."""
        classes = self._plan.variables.facts.classes
        keeps = any(self._may_keep(v) and self.is_written(v, region) for v in self.slots)
        for variable, uses in self._uses[region].items():
            if variable.lasting or variable in self._plan.uniform:
                continue
            addresses = [use for use in uses if use.kind == "address"]
            far = (variable in self.slots and bool(addresses)) or any(map(self._is_stored, addresses))
            near = any(use.kind in ("address", "argument") for use in uses) or variable.is_of(classes.places)
            if far or (near and keeps):
                raise Unsupported(f"a pointer to {variable.name} may outlive a region")

    def _is_stored(self, use: Use) -> bool:
        """Tell whether an address is written to memory, or to a member of something."""
        node = self._plan.body.descendant_for_byte_range(use.start, use.start + 1)
        while node is not None and node.type != "assignment_expression":
            node = None if node.type.endswith("statement") else node.parent
        target = None if node is None else node.child_by_field_name("left")
        return (
            target is not None and target.type != "identifier" and not target.start_byte <= use.start < target.end_byte
        )

    def _may_keep(self, variable: Variable) -> bool:
        pointer = variable.declarator is not None and any(find(variable.declarator, "pointer_declarator"))
        return pointer or variable.is_of(self._plan.variables.facts.classes.keepers)

    def is_written(self, variable: Variable, region: Region) -> bool:
        """Tell whether a region declares a variable, or may change it."""
        return self.is_home(variable, region) or any(u.kind != "read" for u in self._uses[region].get(variable, ()))

    def is_home(self, variable: Variable, region: Region) -> bool:
        """Tell whether a region declares a variable."""
        return self._homes[variable] is region

    def used(self, region: Region) -> dict[Variable, list[Use]]:
        """Return the variables that a region uses, with the places."""
        return self._uses[region]

    def foreign(self, region: Region, only: Node | None = None) -> list[Variable]:
        """Return the variables that a region, or only a part of it, needs and others declare.

        Those come first that others are computed from.
        """
        wanted = {v for v in self._uses[region] if not self.is_home(v, region)}
        if only is not None:
            wanted &= {v for start, v in self._plan.variables.at.items() if only.start_byte <= start < only.end_byte}
        for variable in wanted & self._again:
            wanted |= set(self.needed(variable.value))
        kept = (v for v in wanted if v in self.slots or (v in self._again and not self.is_home(v, region)))
        return sorted(kept, key=lambda v: v.start)

    def needed(self, node: Node | None) -> list[Variable]:
        """Return the variables that are to be computed again for a pure expression, in their order."""
        found: set[Variable] = set()
        nodes = [node]
        while nodes:
            node = nodes.pop()
            if node is None:
                continue
            at = self._plan.variables.at.items()
            more = {v for start, v in at if node.start_byte <= start < node.end_byte} & self._again - found
            found |= more
            nodes += [each.value for each in more]
        return sorted(found, key=lambda v: v.start)
