"""Kernels with barriers, made at random: well-defined, and of every shape that barriers can stand in."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["generate_kernel"]


@dataclass
class Scope:
    """Names that can be seen: variables that can be changed, constants, and numbers that all threads have alike."""

    variables: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=lambda: ["t", "threadIdx.x", "blockIdx.x", "n"])
    alike: list[str] = field(default_factory=lambda: ["n", "3", "(int)blockDim.x", "(int)blockIdx.x"])

    def inner(self) -> Scope:
        return Scope(list(self.variables), list(self.constants), list(self.alike))


class Writer:
    """Writes the statements of one kernel. `meet` says that all threads that are left come to a statement."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def value(self, scope: Scope, depth: int = 0) -> str:
        choice = self.random.randrange(9 if depth < 3 else 5)
        if choice < 2 and scope.variables:
            return self.random.choice(scope.variables)
        if choice == 2:
            return f"(unsigned){self.random.choice(scope.constants + scope.alike)}"
        if choice == 3:
            return f"in[(t + {self.random.randrange(5)}) % n]"
        if choice <= 4:
            return f"{self.random.randrange(9)}u"
        left, right = self.value(scope, depth + 1), self.value(scope, depth + 1)
        if choice == 5:
            return f"({left} < {right} ? {right} : {left})"
        return f"twice({left})" if choice == 6 else f"({left} {self.random.choice('+-*^&|')} {right})"

    def block(self, scope: Scope, depth: int, meet: bool, *, first: str = "") -> list[str]:
        inner = scope.inner()
        lines = [line for _ in range(self.random.randint(1, 4)) for line in self.statement(inner, depth + 1, meet)]
        return [f"{{ {first}", *(f"  {line}" for line in lines), "}"]

    def statement(self, scope: Scope, depth: int, meet: bool) -> list[str]:
        forms = ["declare", "assign", "assign", "constant", "array", "shadow", "strided", "switch"]
        forms += ["if", "loop"] * (depth < 3) + ["return"] * (depth < 2)
        if meet:
            forms += ["exchange"] * 3 + ["vote", "alike", "change alike"]
            forms += ["compound", "if alike", "if data", "for alike", "for data", "while", "do"] * (depth < 3)
        form, random = self.random.choice(forms), self.random
        if form == "declare":
            one, two = self.name("x"), self.name("x")
            line = f"unsigned {one} = {self.value(scope)}, {two} = {one} + {self.value(scope)};"
            scope.variables += [one, two]
            return [line]
        if form == "assign" and scope.variables:
            sign = random.choice(["=", "+=", "^=", "-="])
            return [f"{random.choice(scope.variables)} {sign} {self.value(scope)};"]
        if form == "constant":
            name = self.name("c")
            value = random.choice(["{} * 2 + threadIdx.x % 5", "t + {}", "n + threadIdx.x", "{} - 1 + (int)blockDim.x"])
            line = f"const unsigned {name} = {value.format(random.choice(scope.constants))};"
            scope.constants.append(name)
            return [line]
        if form == "array":
            name = self.name("a")
            scope.variables += [f"{name}[1]", f"{name}[t & 1]"]
            return [f"unsigned {name}[2]; for (int k = 0; k < 2; ++k) {name}[k] = k + t;"]
        if form == "shadow" and scope.variables and scope.variables[0].isidentifier():
            name = scope.variables[0]
            return [f"{{ unsigned old = {name}; unsigned {name} = old + 1; {name} *= 2; out[t] += {name}; }}"]
        if form == "strided":
            name, kind = self.name("j"), random.choice(["int", "unsigned", "size_t"])
            start = random.choice(["threadIdx.x", "t", "t * 2", "threadIdx.x + 1", "t + 3 - 1"])
            bound = random.choice([f"({kind})n", f"({kind})blockDim.x * 2"])
            value = self.value(Scope(scope.variables, [*scope.constants, name], scope.alike))
            target = random.choice([*scope.variables, "out[t]"])
            return [f"for ({kind} {name} = {start}; {name} < {bound}; {name} += blockDim.x) {target} += {value};"]
        if form == "switch" and scope.variables:
            name = random.choice(scope.variables)
            return [f"switch ({name} % 3) {{ case 0: {name} += 5; break; case 1: {name} ^= {self.value(scope)}; }}"]
        if form == "if":
            lines = [f"if ({self.value(scope)} % 2)", *self.block(scope, depth, False)]
            return [*lines, "else", *self.block(scope, depth, False)] if random.random() < 0.4 else lines
        if form == "loop":
            name = self.name("k")
            jump = random.choice(["", f"if ({name} == 1) break;", f"if ({name} == 0) continue;"])
            head = f"for (int {name} = 0; {name} < t % 3; ++{name})"
            return [head, *self.block(scope, depth, False, first=jump)]
        if form == "return":
            return [f"if (t % {random.randint(5, 9)} == {random.randrange(5)} && in[t % n] > 70) return;"]
        if form == "exchange":
            name = self.name("x")
            lines = [f"s[t] = {self.value(scope)};", "__syncthreads();"]
            lines += [f"unsigned {name} = s[(t + {random.randrange(1, 4)}) % blockDim.x];", "__syncthreads();"]
            scope.variables.append(name)
            return lines
        if form == "vote":
            name, which = self.name("x"), random.choice(["count", "or", "and"])
            line = f"unsigned {name} = __syncthreads_{which}({self.value(scope)} % 3 == 0);"
            scope.variables.append(name)
            return [line]
        if form == "alike":
            name = self.name("u")
            line = f"int {name} = {random.choice(scope.alike)} % 4 + {random.randrange(3)};"
            scope.alike.append(name)
            return [line]
        if form == "change alike" and any(name.startswith("u") for name in scope.alike):
            name = random.choice([name for name in scope.alike if name.startswith("u")])
            return [random.choice([f"{name} += {random.choice(scope.alike)} % 5;", f"{name} = 7 - {name} % 3;"])]
        if form == "compound":
            return self.block(scope, depth, meet)
        if form in ("if alike", "if data"):
            some = random.choice(scope.alike) if form == "if alike" else f"in[{random.randrange(3)} % n]"
            lines = [f"if ({some} % 3 > {random.randrange(2)})", *self.block(scope, depth, True)]
            return [*lines, "else", *self.block(scope, depth, False)] if random.random() < 0.4 else lines
        if form in ("for alike", "for data"):
            name = self.name("i")
            bound = random.choice(scope.alike) if form == "for alike" else f"(int)in[{random.randrange(3)} % n]"
            inner = scope.inner()
            inner.alike.append(name)
            jump = random.choice(["", "", f"if ({name} == 2) break;", f"if ({name} == 0) continue;"])
            head = f"for (int {name} = 0; {name} < {bound} % 3 + 1; ++{name})"
            return [head, *self.block(inner, depth, True, first=jump if form == "for alike" else "")]
        if form in ("while", "do"):
            name = self.name("w")
            first = f"int {name} = in[{random.randrange(3)} % n] % 3;"
            if form == "while":
                return ["{", f"{first} while ({name}-- > 0)", *self.block(scope, depth, True), "}"]
            return ["{", f"{first} do", *self.block(scope, depth, True), f"while (--{name} > 0);", "}"]
        return []


def generate_kernel(seed: int, name: str) -> str:
    """Write the kernel of a seed: ``name(const unsigned *in, unsigned *out, int n)``.

    It takes four bytes of shared memory for each thread, writes out[threadIdx.x], and is for one block. It calls twice.
    """
    writer, scope = Writer(seed), Scope()
    lines = [line for _ in range(writer.random.randint(3, 7)) for line in writer.statement(scope, 0, True)]
    guard = writer.random.choice(
        ["t < n - 5", "(int)(threadIdx.x + 1) <= n - 4 && n > 6", "!(t >= n - 6)", "n - 5 > t + 1"]
    )
    ends = [f"out[t] += {each};" for each in scope.variables]
    form = writer.random.randrange(4)
    if form == 0:
        lines += ["__syncthreads();", f"if (!({guard})) return;", *ends]
    elif form == 1:
        lines += ["__syncthreads();", "const int late = t + 1, other = late * 2;", f"if ({guard}) {{", *ends, "}"]
        lines += ["__syncthreads();", "out[t] += other;"]
    elif form == 2:
        lines += ["__syncthreads();", "const int late = t + n;", "if (late >= 2 * n - 7 || t > 50) return;", *ends]
        lines += ["out[t] += late;"]
    else:
        lines += ends
    body = "\n  ".join(lines)
    return (
        f'extern "C" __global__ void {name}(const unsigned *in, unsigned *out, int n) {{\n'
        f"  extern __shared__ unsigned s[];\n  const int t = threadIdx.x;\n  s[t] = 0;\n  __syncthreads();\n  {body}\n}}\n"
    )
