"""Taking a kernel apart: where its regions begin and end, and which variables have one value for the block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium_cpu.regions._groups import BLOCK_BARRIER
from podium_cpu.regions._pieces import Barrier, Block, Branch, Loop, Once, Piece, Region, RowLoop, Strided, inner_pieces
from podium_cpu.regions._rows import rises, slope
from podium_cpu.regions._syntax import called_name, declared_name, find, is_loop, same, word
from podium_cpu.regions._variables import Unsupported, Variable, Variables

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["BARRIERS", "Plan"]

BARRIERS = ("__syncthreads", BLOCK_BARRIER, "__syncthreads_count", "__syncthreads_or", "__syncthreads_and")

_INTEGERS = {"int", "long", "long long", "long int", "int32_t", "int64_t", "ptrdiff_t", "short"}
_UNSIGNED = {"unsigned", "unsigned int", "size_t", "uint32_t", "uint64_t", "unsigned long", "unsigned long long"}
_ONCE = (
    "alias_declaration",
    "type_definition",
    "static_assert_declaration",
    "using_declaration",
    "struct_specifier",
    "namespace_alias_definition",
    ";",
)


@dataclass(eq=False)
class Plan:
    """The pieces of one function's body, and what is known of its variables."""

    body: Node
    variables: Variables
    uniform: set[Variable] = field(default_factory=set)
    again: set[Variable] = field(default_factory=set)  # can be computed again in every region
    regions: list[Region] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._barriers = {call.id for call in find(self.body, "call_expression") if called_name(call) in BARRIERS}
        self._find_uniform()
        self.pieces = self._sequence(self.body, True)
        _refuse_jumps(self.pieces)

    # ---- which variables have one value ----

    def _find_uniform(self) -> None:
        candidates = [v for v in self.variables.all if not (v.bound or v.lasting or v.dimensions)]
        classes = self.variables.facts.classes
        own = {v for v in candidates if v.declaration is not None and ("::" in v.type or v.type in classes.built)}
        self.uniform = {v for v in candidates if v not in own and not v.has("argument", "address")}
        self.again = {
            v
            for v in candidates
            if v.is_fixed and v.declaration is not None and v.value is not None and v.type not in classes.names
        } - own
        # Where it is computed again, names in its value could mean others.
        count = Counter(variable.name for variable in self.variables.all)
        self.again -= {
            v for v in self.again if v.value and any(count[word(n)] > 1 for n in find(v.value, "identifier"))
        }
        while True:
            statements = {node.id for node in self._uniform_statements(self.body)}
            wrong = {v for v in self.uniform if not self._stays_uniform(v, statements)}
            wrong_again = {v for v in self.again if not self.is_pure(v.value)}
            if not wrong and not wrong_again:
                return
            self.uniform -= wrong
            self.again -= wrong_again

    def is_pure(self, node: Node | None) -> bool:
        """Tell whether an expression can be computed at any time, and as often as one likes."""
        return self.variables.is_uniform(node, self.uniform, self.again)

    def is_uniform(self, node: Node | None) -> bool:
        """Tell whether an expression has one value for all threads of the block."""
        return self.variables.is_uniform(node, self.uniform)

    def _stays_uniform(self, variable: Variable, statements: set[int]) -> bool:
        declaration = variable.declaration
        if declaration is not None and not (declaration.id in statements and self.is_uniform(variable.value)):
            return False
        for use in variable.uses:
            if use.kind == "change":
                node = self.body.descendant_for_byte_range(use.start, use.start + 1)
                while node is not None and node.id not in statements:
                    node = node.parent
                if node is None or not self._changes_uniform(node):
                    return False
        return True

    def _changes_uniform(self, node: Node) -> bool:
        """Tell whether a statement or expression changes variables of one value only, each to one value."""
        if node.type == "expression_statement":
            return bool(node.named_children) and self._changes_uniform(node.named_children[0])
        if node.type == "comma_expression":
            return all(self._changes_uniform(child) for child in node.named_children)
        if node.type == "update_expression":
            target: Node | None = node.child_by_field_name("argument")
        elif node.type == "assignment_expression" and self.is_uniform(node.child_by_field_name("right")):
            target = node.child_by_field_name("left")
        else:
            return False
        return target is not None and self.variables.at.get(target.start_byte) in self.uniform and not target.children

    def _uniform_statements(self, node: Node) -> Iterator[Node]:
        """Give the statements that are not inside what threads run or decide one by one."""
        for statement in _statements(node):
            yield statement
            if not self._comes_apart(statement, True):
                continue
            if statement.type == "compound_statement":
                yield from self._uniform_statements(statement)
            elif statement.type == "if_statement" and self.is_uniform(statement.child_by_field_name("condition")):
                for name in ("consequence", "alternative"):
                    branch = statement.child_by_field_name(name)
                    if branch is not None:
                        yield from self._uniform_statements(branch)
            elif is_loop(statement) and self._has_uniform_header(statement):
                for name in ("initializer", "update"):
                    part = statement.child_by_field_name(name)
                    if part is not None:
                        yield part
                body = statement.child_by_field_name("body")
                if body is not None:
                    yield from self._uniform_statements(body)

    def _has_uniform_header(self, loop: Node) -> bool:
        if loop.type == "for_range_loop" or not self.is_uniform(loop.child_by_field_name("condition")):
            return False
        first, update = loop.child_by_field_name("initializer"), loop.child_by_field_name("update")
        if first is not None and first.type == "declaration":
            fine = all(self.variables.at.get(name.start_byte) in self.uniform for name in _names(first))
        else:
            fine = first is None or self._changes_uniform(first)
        return fine and (update is None or self._changes_uniform(update))

    # ---- pieces ----

    def _comes_apart(self, node: Node, uniform: bool) -> bool:
        """Tell whether a statement is taken apart: threads meet in it, or it is quicker so."""
        if node.type not in ("compound_statement", "if_statement", "else_clause") and not is_loop(node):
            return False
        if any(call.id in self._barriers for call in find(node, "call_expression")):
            return True
        if node.type == "compound_statement":
            return any(self._comes_apart(each, uniform) for each in _statements(node))
        if node.type == "if_statement" and uniform and self.is_uniform(node.child_by_field_name("condition")):
            jumps = ("return_statement", "break_statement", "continue_statement")
            if any(find(node, *jumps, within=("lambda_expression",))):
                return True
            branches = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
            inner = [each for branch in branches if branch is not None for each in _statements(branch)]
            return any(self._comes_apart(each, uniform) for each in inner)
        return self._strided(node) is not None or self._row_loop(node) is not None

    def _region(self, nodes: list[Node]) -> Region:
        region = Region(nodes, len(self.regions))
        self.regions.append(region)
        return region

    def _sequence(self, node: Node, uniform: bool) -> list[Piece]:
        pieces: list[Piece] = []
        for statement in _statements(node):
            piece = self._piece(statement, uniform)
            if piece is None and statement.type == "declaration":
                declarators = statement.children_by_field_name("declarator")
                once = [each for each in declarators if self.is_declared_once(each)]
                if once:
                    pieces.append(Once(statement, once))
            if piece is not None:
                pieces.append(piece)
            elif pieces and isinstance(pieces[-1], Region):
                pieces[-1].nodes.append(statement)
            else:
                pieces.append(self._region([statement]))
        return pieces

    def _piece(self, node: Node, uniform: bool) -> Piece | None:
        """Make a piece of a statement; None for one that threads run one after another."""
        if node.type in _ONCE:
            return Once(node)
        if node.type == "declaration" and all(map(self.is_declared_once, node.children_by_field_name("declarator"))):
            return Once(node)
        if uniform and node.type in ("return_statement", "break_statement", "continue_statement"):
            return Once(node)
        if uniform and node.type == "expression_statement" and self._changes_uniform(node):
            return Once(node)
        if (barrier := self._barrier(node)) is not None:
            return barrier
        if not self._comes_apart(node, uniform):
            return None
        if node.type == "compound_statement":
            return Block(node, self._sequence(node, uniform))
        if node.type == "if_statement":
            return self._branch(node, uniform)
        return self._row_loop(node, True) or self._strided(node, True) or self._loop(node, uniform)

    def is_declared_once(self, declarator: Node) -> bool:
        """Tell whether a declarator declares a variable that the block has once."""
        name = declared_name(declarator)
        variable = None if name is None else self.variables.at.get(name.start_byte)
        return variable is not None and (variable.lasting or variable in self.uniform)

    def _barrier(self, node: Node) -> Barrier | None:
        calls = [call for call in find(node, "call_expression") if call.id in self._barriers]
        if len(calls) != 1 or node.type not in ("expression_statement", "declaration"):
            return None
        call = calls[0]
        arguments = call.child_by_field_name("arguments")
        expression = node.named_children[0] if node.type == "expression_statement" else None
        if called_name(call) in BARRIERS[:2]:
            return Barrier(node, call) if same(expression, call) else None
        if arguments is None or arguments.named_child_count != 1:
            return None
        if same(expression, call):
            return Barrier(node, call, self._region([arguments.named_children[0]]))
        if expression is not None and expression.type == "assignment_expression":
            target = expression.child_by_field_name("left")
            fine = same(expression.child_by_field_name("right"), call) and target is not None and not target.children
        else:
            values = node.children_by_field_name("declarator")
            fine = expression is None and len(values) == 1 and same(values[0].child_by_field_name("value"), call)
        vote = self._region([arguments.named_children[0]])
        return Barrier(node, call, vote, self._region([node])) if fine else None

    def _branch(self, node: Node, uniform: bool) -> Branch:
        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        other = node.child_by_field_name("alternative")
        if condition is None or then is None or any(find(condition, "declaration", "init_statement")):
            raise Unsupported("an if declares a variable")
        alike = uniform and self.is_uniform(condition)
        if not alike and other is not None and _meets(self, then) and _meets(self, other):
            raise Unsupported("threads may meet at one barrier or the other")
        if any(word(child) == "constexpr" for child in node.children) and not alike:
            raise Unsupported("an if constexpr is about more than constants")
        return Branch(
            node,
            None if alike else self._region([condition]),
            self._sequence(then, alike),
            [] if other is None else self._sequence(other, alike),
        )

    def _loop(self, node: Node, uniform: bool) -> Loop:
        body, condition = node.child_by_field_name("body"), node.child_by_field_name("condition")
        if body is None or node.type == "for_range_loop":
            raise Unsupported("threads meet in a loop over a range")
        if condition is not None and any(find(condition, "declaration")):
            raise Unsupported("a loop declares a variable in its condition")
        if uniform and self._has_uniform_header(node):
            return Loop(node, None, None, None, self._sequence(body, True))
        first, update = node.child_by_field_name("initializer"), node.child_by_field_name("update")
        return Loop(
            node,
            None if condition is None else self._region([condition]),
            None if first is None else self._region([first]),
            None if update is None else self._region([update]),
            self._sequence(body, False),
        )

    def _strided(self, node: Node, apart: bool = False) -> Strided | None:
        """Read ``for (int i = threadIdx.x; i < n; i += blockDim.x)`` and its like, where nothing in it jumps."""
        if node.type != "for_statement":
            return None
        first, update, body = (node.child_by_field_name(name) for name in ("initializer", "update", "body"))
        condition = node.child_by_field_name("condition")
        if first is None or first.type != "declaration" or update is None or condition is None or body is None:
            return None
        names = list(_names(first))
        variable = self.variables.at.get(names[0].start_byte) if len(names) == 1 else None
        if variable is None or variable.value is None or variable.bound or variable.is_pointer:
            return None
        kind = " ".join(word(child) for child in first.children if child.type not in ("init_declarator", ";"))
        step = update.child_by_field_name("right")
        fine = (
            (kind in _INTEGERS or (kind in _UNSIGNED and step is not None and _is_positive(step)))
            and update.type == "assignment_expression"
            and word(update.child_by_field_name("operator")) == "+="
            and self._is_name(update.child_by_field_name("left"), variable)
            and self.is_uniform(step)
            and condition.type == "binary_expression"
            and word(condition.child_by_field_name("operator")) in ("<", "<=")
            and self._is_name(condition.child_by_field_name("left"), variable)
            and self.is_uniform(condition.child_by_field_name("right"))
            # A number below zero has left the loop by an unsigned bound, and would come back after a step.
            and (
                kind in _UNSIGNED or rises(self, variable.value) or self._is_int(condition.child_by_field_name("right"))
            )
            and self.is_pure(variable.value)
            and not self.is_uniform(variable.value)
            and sum(use.kind != "read" for use in variable.uses) == 1
            and not any(find(body, "return_statement", within=("lambda_expression",)))
            and not any(call.id in self._barriers for call in find(body, "call_expression"))
            and not any(_jumps(body))
            and not any(body.start_byte <= each.start < body.end_byte for each in self.variables.all if each.lasting)
        )
        if not fine or step is None:
            return None
        region = self._region([node]) if apart else Region([node])
        # An int takes every number that begins below zero for what it is; in others it could be a great one.
        is_row = slope(self, variable.value) == 1 and (kind in ("int", "int32_t") or rises(self, variable.value))
        return Strided(node, variable, kind, variable.value, is_row, condition, step, body, region)

    def _row_loop(self, node: Node, apart: bool = False) -> RowLoop | None:
        """Read ``for (int y = threadIdx.y; y < n; y += blockDim.y)`` and its like, around a loop along x perhaps."""
        outer = self._strided(node)
        if outer is None or slope(self, outer.start) != 0:
            return None
        statements = _statements(outer.body)
        inner = self._strided(statements[0]) if len(statements) == 1 else None
        if inner is not None and not inner.is_row:
            inner = None
        region = self._region([node]) if apart else Region([node])
        first = node.child_by_field_name("initializer")
        return None if first is None else RowLoop(node, first, outer.body, inner, region)

    def _is_int(self, node: Node | None) -> bool:
        """Tell whether a number is surely signed."""
        variable = None if node is None else self.variables.at.get(node.start_byte)
        if node is None or node.type not in ("identifier", "number_literal"):
            return False
        return variable.type in _INTEGERS if variable is not None else word(node).isdecimal()

    def _is_name(self, node: Node | None, variable: Variable) -> bool:
        return node is not None and node.type == "identifier" and self.variables.at.get(node.start_byte) is variable


def _meets(plan: Plan, node: Node) -> bool:
    return any(called_name(call) in BARRIERS for call in find(node, "call_expression"))


def _statements(node: Node) -> list[Node]:
    """Return the statements of a compound statement, or the one that stands in its place."""
    if node.type == "else_clause":
        node = next(child for child in node.named_children)
    if node.type != "compound_statement":
        return [node]
    return [child for child in node.children if child.type not in ("{", "}", "comment")]


def _names(declaration: Node) -> Iterator[Node]:
    for declarator in declaration.children_by_field_name("declarator"):
        name = declared_name(declarator)
        if name is not None:
            yield name
        else:
            yield from find(declarator, "identifier", within=("argument_list",))


def _is_positive(step: Node) -> bool:
    """Tell whether a step is made of sizes and positive numbers, by sums and products."""
    if step.type in ("parenthesized_expression", "binary_expression"):
        operator = word(step.child_by_field_name("operator")) or "+"
        return operator in ("+", "*") and all(_is_positive(child) for child in step.named_children)
    if step.type == "number_literal":
        return word(step).strip("0") != ""
    return word(step).partition(".")[0] in ("blockDim", "gridDim")


def _jumps(node: Node, inside: tuple[bool, bool] = (False, False)) -> Iterator[Node]:
    """Give each break and continue that leaves a statement; `inside` says whether one is caught by now."""
    if node.type == "lambda_expression":
        return
    if (node.type == "break_statement" and not inside[0]) or (node.type == "continue_statement" and not inside[1]):
        yield node
    if is_loop(node):
        inside = (True, True)
    elif node.type == "switch_statement":
        inside = (True, inside[1])
    for child in node.children:
        yield from _jumps(child, inside)


def _refuse_jumps(pieces: list[Piece]) -> None:
    """Refuse jumps out of what threads run one by one; others stay as they are in loops that are still loops."""
    for piece in pieces:
        if isinstance(piece, Region) and any(jump for node in piece.nodes for jump in _jumps(node)):
            raise Unsupported("a thread leaves a loop that others stay in")
        _refuse_jumps(inner_pieces(piece))
