"""Statements in which threads meet, where not all of them may take part.

Every thread of a block has to reach each barrier. In CUDA a warp may go alone through a branch with a warp function
in it, and a thread may have returned before a barrier. So where control is not the same for all, flags say who takes
part: everybody walks through the branch and meets, and what lies between is done under the flags. A loop goes on as
long as anybody wants to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium_opencl.translation.collectives import called_name, exchange
from podium_opencl.translation.prelude import helper_text
from podium_opencl.translation.statements import Loop, Statements
from podium_opencl.translation.symbols import Scope, text_of
from podium_opencl.translation.types import VOID
from podium_opencl.translation.uniformity import LOOPS, has_jumps, is_uniform
from podium_opencl.translation.values import truth

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["FLAG", "Masked"]

# PoCL (3.0, 3.1) takes some of these for equal in all threads of a block, unless each of them is read from memory.
FLAG = "volatile uchar"
_DECLARATIONS = (
    "declaration",
    "alias_declaration",
    "type_definition",
    "static_assert_declaration",
    "struct_specifier",
    "enum_specifier",
    "using_declaration",
)


class Masked(Statements):
    """The translation of statements that may have barriers in them."""

    def meeting(self, node: Node) -> str:
        """Translate any statement."""
        if not self.is_collective(node):
            return self._alone(node)
        method = getattr(self, f"_meet_{node.type}", None)
        if method is None:
            raise self.refused(
                node, f"podium-opencl cannot have a barrier or a warp function in a {node.type.replace('_', ' ')}"
            )
        with self.at(node):
            text: str = method(node)
        return text if node.type == "compound_statement" else self.line(node) + text

    def _alone(self, node: Node) -> str:
        """Translate a statement in which no threads meet, for those that take part."""
        leaves = self._leaves(node)
        if node.type in _DECLARATIONS:
            return self.statement(node)
        if not (self.is_masked or leaves):
            return self.statement(node)
        before, self.label = self.label, self.fresh("end") if leaves else ""
        condition = f"if ({self.condition()}) " if self.is_masked else ""
        text = f"{condition}{self.block(node)}"
        if leaves:
            text += f" {self.label}: ;"
            if self._returns(node):
                self.live = "podium_live"
        self.label = before
        return text

    def _returns(self, node: Node) -> bool:
        if node.type == "return_statement":
            return node.start_byte in self.leaves_early
        return any(self._returns(each) for each in node.named_children)

    def _leaves(self, node: Node) -> bool:
        return self._returns(node) or (any(each.goes_on for each in self.loops) and _breaks(node))

    def _meet_compound_statement(self, node: Node) -> str:
        before, self.scope = self.scope, Scope(self.scope, kind="block")
        text = "{" + "".join(self.meeting(each) for each in node.named_children if each.type != "comment") + " }"
        self.scope = before
        return text

    def _meet_expression_statement(self, node: Node) -> str:
        self._refuse_reordered(node)
        self.may_hoist = True
        value = self.value(node.named_children[0])
        self.may_hoist = False
        text = self.taken()
        if not value.text:
            return text
        condition = f"if ({self.condition()}) " if self.is_masked else ""
        return f"{text} {condition}{value.text};"

    def _refuse_reordered(self, node: Node) -> None:
        """Refuse a change that stands before a meeting of threads, which would go first."""
        calls = [each for each in _inside(node, ("call_expression",)) if self._meets(each)]
        for change in _inside(node, ("update_expression", "assignment_expression")):
            for call in calls:
                is_around = change.start_byte <= call.start_byte and call.end_byte <= change.end_byte
                is_argument = any(each.start_byte <= change.start_byte < each.end_byte for each in calls)
                if change.start_byte < call.start_byte and not (is_around or is_argument or _is_left(change, call)):
                    advice = "as a statement of its own, before the one with a barrier in it"
                    raise self.refused(change, f"write {text_of(change)} {advice}")

    def _meets(self, call: Node) -> bool:
        return called_name(call) in self.whole.collective

    def _meet_declaration(self, node: Node) -> str:
        for each in node.named_children:
            self._refuse_reordered(each)
        self.may_hoist = True
        texts = self.declaration(node)
        self.may_hoist = False
        return f"{self.taken()} {' '.join(texts)}"

    def _meet_return_statement(self, node: Node) -> str:
        self._refuse_reordered(node)
        self.may_hoist = True
        value = self.returned(node)
        self.may_hoist = False
        text = self.taken()
        early = node.start_byte in self.leaves_early
        keep = f"podium_result = {value};" if value else ""
        inside = f"{keep} podium_live = 0;" if early else f"return {value};"
        condition = f"if ({self.condition()}) " if self.is_masked else ""
        if early:
            self.live = "podium_live"
        return f"{text} {condition}{{ {inside} }}"

    def _meet_if_statement(self, node: Node) -> str:
        consequence, alternative = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if alternative is not None and alternative.type == "else_clause":
            alternative = alternative.named_children[-1]
        clause = node.child_by_field_name("condition")
        outer, self.scope = self.scope, Scope(self.scope, kind="block")
        if clause is not None:
            self._refuse_reordered(clause)
        self.may_hoist = True
        opening, condition = self.head_condition(node)
        self.may_hoist = False
        opening += self.taken()
        if condition.constant is not None:
            chosen = consequence if condition.constant else alternative
            text = self._branch(chosen) if chosen is not None else ";"
        elif clause is not None and not self.is_masked and self._is_shared(clause):
            text = f"if ({condition.text}) {self._branch(consequence)}"
            text += f" else {self._branch(alternative)}" if alternative is not None else ""
        else:
            text = self._flagged(condition.text, consequence, alternative)
        self.scope = outer
        return f"{{ {opening}{text} }}"

    def _flagged(self, condition: str, consequence: Node | None, alternative: Node | None) -> str:
        yes, no = self.fresh("yes"), self.fresh("no")
        part = self.condition()
        text = f"{FLAG} {yes} = 0, {no} = 0; if ({part}) {{ {yes} = ({condition}); {no} = !{yes}; }} "
        for flag, branch in ((yes, consequence), (no, alternative)):
            if branch is not None:
                self.mask.append(flag)
                text += self._branch(branch)
                self.mask.pop()
        return text

    def _branch(self, node: Node | None) -> str:
        if node is None:
            return "{ }"
        if node.type == "compound_statement":
            return self.meeting(node)
        before, self.scope = self.scope, Scope(self.scope, kind="block")
        text = "{" + self.meeting(node) + " }"
        self.scope = before
        return text

    def _is_shared(self, node: Node) -> bool:
        return not self.is_collective(node) and is_uniform(node, self.varying, self.scope)

    def _meet_for_statement(self, node: Node) -> str:
        initial, update = node.child_by_field_name("initializer"), node.child_by_field_name("update")
        condition = node.child_by_field_name("condition")
        head = [each for each in (initial, condition, update) if each is not None]
        for each in head:
            if each is not condition and self.is_collective(each):
                raise self.refused(each, "podium-opencl cannot have a barrier or a warp function in the head of a loop")
        outer, self.scope = self.scope, Scope(self.scope, kind="block")
        is_own = initial is not None and initial.type == "declaration"
        if not has_jumps(node) and (not self.is_masked or is_own) and all(self._is_head(each) for each in head):
            mask, self.mask, live, self.live = self.mask, [], self.live, None  # all threads go through the head
            start, test, step = self.for_head(node)
            self.mask, self.live = mask, live
            before, self.loops = self.loops, (*self.loops, Loop())
            text = f"{{ {start} for (; {test}; {step}) {self._branch(node.child_by_field_name('body'))} }}"
            self.loops = before
        else:
            start = self._alone(initial) if initial is not None and initial.type == "declaration" else ""
            if initial is not None and not is_own:
                start = self._guarded(f"{self.value(initial).text};")
            text = f"{{ {start} {self._turned(node, condition, update, False)} }}"
        self.scope = outer
        return text

    def _is_head(self, node: Node) -> bool:
        """Tell whether a part of a loop's head does the same in all threads."""
        if node.type == "declaration":
            declarators = node.children_by_field_name("declarator")
            values = [each.child_by_field_name("value") for each in declarators]
            return all(value is not None and self._is_shared(value) for value in values)
        if node.type == "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            return left is not None and right is not None and self._is_shared(left) and self._is_shared(right)
        if node.type == "update_expression":
            argument = node.child_by_field_name("argument")
            return argument is not None and argument.type == "identifier" and self._is_shared(argument)
        if node.type == "comma_expression":
            return all(self._is_head(each) for each in node.named_children)
        return self._is_shared(node)

    def _meet_while_statement(self, node: Node) -> str:
        clause = node.child_by_field_name("condition")
        if not self.is_masked and not has_jumps(node) and clause is not None and self._is_shared(clause):
            _, condition = self.head_condition(node)
            before, self.loops = self.loops, (*self.loops, Loop())
            text = f"while ({condition.text}) {self._branch(node.child_by_field_name('body'))}"
            self.loops = before
            return text
        return f"{{ {self._turned(node, clause, None, False)} }}"

    def _meet_do_statement(self, node: Node) -> str:
        return f"{{ {self._turned(node, node.child_by_field_name('condition'), None, True)} }}"

    def _guarded(self, text: str) -> str:
        return f"if ({self.condition()}) {{ {text} }}" if self.is_masked else text

    def _turned(self, node: Node, condition: Node | None, update: Node | None, is_do: bool) -> str:
        """Translate a loop that goes on as long as any thread of the block wants to."""
        if self._returns(node):
            self.live = "podium_live"
        goes_on, turns = self.fresh("goes"), self.fresh("turns")
        memory = exchange(self)
        self.whole.helper("podium_thread", helper_text("thread"))
        start = f"{FLAG} {goes_on} = ({self.condition()});"
        self.mask.append(goes_on)
        test = self._tested(condition, goes_on) if condition is not None else ""
        ask = f"if (!podium_any((uchar)({self.condition()}), {memory})) break;"
        before, self.loops = self.loops, (*self.loops, Loop(goes_on, turns))
        self.mask.append(turns)
        body = self._branch(node.child_by_field_name("body"))
        self.mask.pop()
        self.loops = before
        step = f"if ({self.condition()}) {{ {self.value(update).text}; }}" if update is not None else ""
        self.mask.pop()
        turn = f"{{ {FLAG} {turns} = 1; {body} {step} }}"
        inside = f"{turn} {test} {ask}" if is_do else f"{test} {ask} {turn}"
        return f"{start} for (;;) {{ {inside} }}"

    def _tested(self, condition: Node, goes_on: str) -> str:
        if condition.type == "condition_clause":
            value = condition.child_by_field_name("value")
            if value is None or value.type == "declaration":
                raise self.refused(condition, "podium-opencl has no declarations in conditions")
            condition = value
        self._refuse_reordered(condition)
        self.may_hoist = True
        test = truth(self.rvalue(condition)).text
        self.may_hoist = False
        return f"{self.taken()} if ({self.condition()}) {goes_on} = ({test});"

    def body(self, node: Node) -> str:
        """Translate the body of a function in which threads meet."""
        self.leaves_early = frozenset(self._early(node))
        text = self.meeting(node)
        opening = f"{FLAG} podium_live = 1; " if self.leaves_early else ""
        closing = ""
        # Without the flags, every way through the function ends with a return of its own.
        if self.result != VOID and (self.leaves_early or self.mask):
            opening += f"{self.declared_result()}; "
            closing = " return podium_result;"
        return f"{{ {opening}{text}{closing} }}"

    def declared_result(self) -> str:
        """Declare the variable that keeps what a thread has returned while the others go on."""
        raise NotImplementedError

    def _early(self, node: Node) -> list[int]:
        """Find the returns after which other threads may still meet."""
        meetings: list[int] = []
        returns: list[tuple[int, bool, bool]] = []
        self._survey(node, self.is_masked, False, meetings, returns)
        last = max(meetings, default=-1)
        return [start for start, differs, in_loop in returns if differs and (start < last or in_loop)]

    def _survey(
        self, node: Node, differs: bool, in_loop: bool, meetings: list[int], returns: list[tuple[int, bool, bool]]
    ) -> None:
        kind = node.type
        if kind == "return_statement":
            returns.append((node.start_byte, differs or any(each[1] for each in returns), in_loop))
        if kind == "call_expression" and self.is_collective(node):
            meetings.append(node.start_byte)
        if kind in LOOPS:
            in_loop = in_loop or self.is_collective(node)
            differs = True  # a turn may come after another thread's return
        elif kind in ("if_statement", "switch_statement"):
            condition = node.child_by_field_name("condition")
            differs = differs or kind == "switch_statement" or condition is None or not self._is_shared(condition)
        for each in node.named_children:
            self._survey(each, differs, in_loop, meetings, returns)


def _breaks(node: Node) -> bool:
    """Tell whether a statement may leave the loop around it, or this turn of it."""
    if node.type in ("break_statement", "continue_statement"):
        return True
    if node.type in LOOPS:
        return False
    return any(_breaks(each) for each in node.named_children)


def _inside(node: Node, kinds: tuple[str, ...]) -> list[Node]:
    """List the nodes of some kinds in a tree."""
    found = [node] if node.type in kinds else []
    for each in node.named_children:
        found += _inside(each, kinds)
    return found


def _is_left(change: Node, call: Node) -> bool:
    """Tell whether a change is in what an assignment assigns to, and the call in its value, which comes first."""
    node = change.parent
    while node is not None:
        if node.type == "assignment_expression" and node.start_byte <= call.start_byte < node.end_byte:
            left = node.child_by_field_name("left")
            return left is not None and left.start_byte <= change.start_byte < left.end_byte <= call.start_byte
        node = node.parent
    return False
