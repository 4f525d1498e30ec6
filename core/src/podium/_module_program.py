"""The one program of a module whose source has variables: its kernels share them, so they are compiled together.

A program that is compiled has a fixed set of kernels. It holds every kernel of the source that is no template, the
instances of templates that the source itself or the user names, and every variable whose type is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from podium._compile import Declaration, declare, included_headers, read_module
from podium._program import Entry, Options, Program
from podium._record import replace
from podium._signature import Signature
from podium._variable import DeclaredVariable, Variable
from podium.errors import SourceError

if TYPE_CHECKING:
    from podium._module import Module
    from podium._object_code import ObjectCode

__all__ = ["Given", "ModuleProgram", "no_variables"]

# What a kernel was asked for by: its name, its signature and its constants, each as far as they were given.
Given = tuple["str | None", "Signature | None", Mapping[str, object]]


class ModuleProgram:
    """What the kernels of a module are compiled from, all at once, and which variables the host can reach."""

    def __init__(
        self, program: Program, declared: Iterable[DeclaredVariable] = (), only: Declaration | None = None
    ) -> None:
        self.program = program
        self._declared = {each.name: each for each in declared}
        self._only = only  # the one kernel of a module that has no other, for the one who declared it

    @classmethod
    def of_source(
        cls,
        source: str,
        path: str | None,
        language: str,
        options: Options,
        kernels: Mapping[str, Signature | None],
        variables: Mapping[str, Variable],
        only: Given | None,
    ) -> ModuleProgram | None:
        """Make it from a source; None if it has no variables and none are given. Raises `SourceError`.

        `kernels` and `variables` are those that the user named; `only` is the one kernel of a module that has no other.
        """
        is_read = language == "cuda"
        declared, plain = read_module(source, options) if is_read else ((), ())
        if not declared and not variables:
            return None
        wanted = {each.name: Variable.of(each.name, each.type) for each in declared if each.type is not None}
        wanted |= variables
        known = tuple(wanted.values())

        def declaration(name: str | None, signature: Signature | None, constants: Mapping[str, object]) -> Declaration:
            return declare(source, path, language, options, name, signature, constants)

        if only is not None:
            found = declaration(*only)
            program = replace(found.program, variables=known)
            return cls(program, declared, replace(found, program=program))
        entries = {entry.name: entry for entry in plain}
        for name, signature in kernels.items():
            found = declaration(name, signature, {})
            entries[found.name] = Entry(found.name, found.signature)
        headers = included_headers(source, path, language, options)
        program = Program(source, language, tuple(entries.values()), options, path, headers, known)
        return cls(program, declared)

    @classmethod
    def of_code(cls, code: ObjectCode) -> ModuleProgram | None:
        """Make it from object code; None if that has no variables."""
        if not code.variables:
            return None
        return cls(Program("", code.format, code.entries, variables=code.variables))

    def declaration(self, given: Given, *, is_only: bool) -> Declaration:
        """Return one of the kernels. Raises `SourceError` saying what to write if it is none of them."""
        name, signature, constants = given
        if is_only and self._only is not None:
            return self._only
        if self._only is not None:
            raise SourceError(
                f"This module was made by podium.kernel for {self._only.name} alone, since its source has variables. "
                "Declare the module by podium.module(source) for several kernels that share them",
                kernel=name,
            )
        if constants:
            raise SourceError(
                f"{name or 'The kernel'} cannot have constants here: it shares {self._shared()} with the other kernels "
                "of the module, so they are compiled together and without constants. Make them template parameters, "
                "or declare it by podium.kernel(source, name, constants=...), with variables of its own",
                kernel=name,
            )
        entries = {entry.name: entry for entry in self.program.entries}
        entry = entries.get(name or "") or entries.get(self._full_name(given))
        if entry is None:
            raise self._not_among(given)
        if signature is not None and _form(signature) != _form(entry.signature):
            raise SourceError(
                f"{entry.name}({entry.signature}) cannot be given the signature {str(signature)!r} here: it is "
                f"compiled together with the other kernels of the module. Give it before: "
                f'podium.module(source, kernels={{"{entry.name}": "{signature}"}})',
                kernel=entry.name,
            )
        return Declaration(entry.name, signature or entry.signature, self.program)

    def variable(self, name: str) -> Variable:
        """Return one of the variables; a part of a qualified name is enough if it is the end of just one.

        Raises `SourceError` if there is none, or its type is not known.
        """
        found = self._matching(name)
        if len(found) > 1:
            raise SourceError(f"{name!r} is the name of {len(found)} variables; say which is meant: {', '.join(found)}")
        if not found:
            raise self._no_variable(name)
        for variable in self.program.variables:
            if variable.name == found[0]:
                return variable
        declared = self._declared[found[0]]
        raise SourceError(
            f"The type of the variable {declared.name} (line {declared.line}) is not clear: {declared.reason}. Give it "
            f"yourself, as [16xfp32] for an array, {{fp32,i32}} or opaque[size,alignment] for a struct: "
            f'podium.module(source, variables={{"{declared.name}": "..."}})',
            line=declared.line,
        )

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The names of the variables, those whose type is not known included."""
        return tuple(dict.fromkeys([*self._declared, *(variable.name for variable in self.program.variables)]))

    def _matching(self, name: str) -> list[str]:
        if not isinstance(name, str):
            raise SourceError(f"The name of a variable is a string such as 'counter', not {name!r}")
        wanted = "".join(name.split())
        paths = {each: (each, getattr(self._declared.get(each), "short_name", each)) for each in self.variable_names}
        found = [each for each, names in paths.items() if wanted.removeprefix("::") in names]
        if found or wanted.startswith("::"):
            return found
        return [each for each, names in paths.items() if any(full.endswith("::" + wanted) for full in names)]

    def _full_name(self, given: Given) -> str:
        name, signature, _ = given
        program = self.program
        found = declare(program.source, program.path, program.language, program.options, name, signature, {}).name
        # Where name and signature are given, the source is not asked.
        ends = [entry.name for entry in program.entries if entry.name.endswith(f"::{found}")]
        return ends[0] if len(ends) == 1 and signature is not None else found

    def _shared(self) -> str:
        names = self.variable_names
        return f"the variable{'s' * (len(names) > 1)} {', '.join(names[:5])}{', ...' * (len(names) > 5)}"

    def _not_among(self, given: Given) -> SourceError:
        name, signature, _ = given
        names = ", ".join(entry.name for entry in self.program.entries) or "none"
        wanted = f'{{"{name}": "{signature}"}}' if signature is not None else f'["{name}"]'
        return SourceError(
            f"{name} is not among the kernels of this module, which are compiled together since they share "
            f"{self._shared()}: {names}. Name it when you declare the module: podium.module(source, kernels={wanted})",
            kernel=name,
        )

    def _no_variable(self, name: str) -> SourceError:
        import difflib  # for errors only: a first launch must not pay for it

        names = self.variable_names
        lines = {each.name: f" (line {each.line})" for each in self._declared.values()}
        close = difflib.get_close_matches(name, names, 1)
        return SourceError(
            f"The module has no variable {name!r}.{f' Did you mean {close[0]!r}?' if close else ''} It has: "
            f"{', '.join(each + lines.get(each, '') for each in names)}. Constants are not among them; for one that a "
            f'header declares, give its type: podium.module(source, variables={{"{name}": "[16xfp32]"}})'
        )


def no_variables(name: str, module: Module) -> SourceError:
    """Make the error for asking a module without variables for one."""
    if module.code is not None:
        where, how = "This object code", "podium.module(code"
    else:
        where, how = f"The source {module.path}" if module.path else "The source", "podium.module(source"
    return SourceError(
        f"{where} has no variables, so none that is called {name!r}. Those are declared __device__, __constant__ or "
        f"__managed__ in a namespace, and are not const. For one that a header declares, give its type: "
        f'{how}, variables={{"{name}": "[16xfp32]"}})'
    )


def _form(signature: Signature) -> list[tuple[str, int]]:
    """What the compiled code knows of a signature."""
    return [(each.type.kind, each.type.size) for each in signature.passed]
