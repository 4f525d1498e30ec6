"""Reading kernels: what is found, what it takes, and what is refused with which words."""

from __future__ import annotations

import pickle
import threading

import pytest
from kernel_table import KERNELS
from refused_table import REFUSED

from podium._signature import Signature
from podium._source import KernelDeclaration, find_kernels, parse_kernel
from podium.errors import SourceError


@pytest.mark.parametrize(("source", "name", "signature"), [row[1:] for row in KERNELS], ids=[row[0] for row in KERNELS])
def test_kernels_are_understood(source: str, name: str | None, signature: str) -> None:
    """Every way that people declare kernels gives the signature that the compiler sees, ARG-01."""
    parsed = parse_kernel(source, name)
    assert str(parsed.signature) == signature
    assert parsed.source == source


@pytest.mark.parametrize(("source", "name", "phrases"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_not_understood_is_refused(source: str, name: str | None, phrases: tuple[str, ...]) -> None:
    """What cannot be resolved is an error that says why and what to write, never a guess, ARG-16."""
    with pytest.raises(SourceError) as caught:
        parse_kernel(source, name)
    for phrase in phrases:
        assert phrase in str(caught.value)


def test_a_refusal_names_kernel_and_line_and_can_be_pickled() -> None:
    """The error has the kernel and the line of the parameter as attributes."""
    with pytest.raises(SourceError) as caught:
        parse_kernel("\n\n__global__ void k(int n,\n  Foo foo) { }", None)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.kernel, error.line) == ("k", 4)
    assert 'signature="n: i32, foo: ?"' in str(error)


@pytest.mark.parametrize("row", [row for row in KERNELS if row[3]], ids=lambda row: row[0])
def test_what_is_proposed_and_read_is_a_signature(row: tuple[str, str, str | None, str]) -> None:
    """The text of every signature that is read can be given back as an explicit one."""
    _, source, name, signature = row
    explicit = Signature.parse(signature)
    assert parse_kernel(source, name).signature == explicit
    assert parse_kernel(source, name, {}, explicit).signature == explicit


NESTED = """
namespace ns {
template <typename T> struct Op { T factor; };
template <typename F, int N> __global__ void reduce(F f, float* x) { }
inline namespace v1 { __global__ void plain(int n) { } }
namespace { __global__ void hidden(int n) { } }
}
__global__ void top(int n);
extern "C" __global__ void top(int m) { }
"""


@pytest.mark.parametrize(
    ("name", "expression", "signature"),
    [
        ("top", "top", "m: i32"),
        ("::top", "top", "m: i32"),
        ("plain", "ns::v1::plain", "n: i32"),
        ("ns::plain", "ns::v1::plain", "n: i32"),
        ("v1::plain", "ns::v1::plain", "n: i32"),
        ("ns::v1::plain", "ns::v1::plain", "n: i32"),
        ("hidden", "ns::hidden", "n: i32"),
        ("reduce<ns::Op<float>,256>", "ns::reduce<ns::Op<float>, 256>", "f: {fp32}, x: *fp32"),
        (
            " ns :: reduce < ns::Op< unsigned  int > , 256 > ",
            "ns::reduce<ns::Op<unsigned int>, 256>",
            "f: {u32}, x: *fp32",
        ),
    ],
)
def test_names(name: str, expression: str, signature: str) -> None:
    """A name may leave out namespaces; the compiler gets the qualified name, in uniform spacing."""
    parsed = parse_kernel(NESTED, name)
    assert (parsed.name, str(parsed.signature)) == (expression, signature)


def test_all_kernels_are_listed_once_and_where_they_are_defined() -> None:
    """A definition beats a declaration; template parameters are listed as they are written."""
    assert find_kernels(NESTED) == [
        KernelDeclaration("ns::reduce", ("typename F", "int N"), 4),
        KernelDeclaration("ns::v1::plain", (), 5),
        KernelDeclaration("ns::hidden", (), 6),
        KernelDeclaration("top", (), 9),
    ]


def test_specialisations_are_no_kernels_of_their_own() -> None:
    """Only the template itself is listed."""
    source = (
        "template <class T> __global__ void k(T* x) { }\n"
        "template <> __global__ void k<int>(int* x) { }\ntemplate __global__ void k<float>(float*);"
    )
    assert find_kernels(source) == [KernelDeclaration("k", ("class T",), 1)]


def test_a_template_with_defaults_needs_no_arguments() -> None:
    """The name expression then has empty brackets, without which the compiler would not find it."""
    parsed = parse_kernel("template <typename T = float, int N = 4> __global__ void k(T* x) { }", None)
    assert (parsed.name, str(parsed.signature)) == ("k<>", "x: *fp32")


def test_template_arguments_are_read_in_the_global_namespace() -> None:
    """A name expression means there what it means to the compiler, not what it would mean beside the kernel."""
    source = (
        "struct S { int a; }; namespace n { struct S { double a; }; "
        "template <class T> __global__ void k(T t, S s) { } }"
    )
    assert str(parse_kernel(source, "k<S>").signature) == "t: {i32}, s: {fp64}"
    assert str(parse_kernel(source, "k<n::S>").signature) == "t: {fp64}, s: {fp64}"


def test_macros_given_to_the_compiler_count() -> None:
    """What -D defines decides conditions and types; without it a default in the source does."""
    source = (
        "#ifndef REAL\n#define REAL float\n#endif\n#if defined(WIDE)\ntypedef long long index;\n#else\n"
        "typedef int index;\n#endif\n__global__ void k(REAL* x, index n) { }"
    )
    defines = (("REAL", "double"), ("WIDE", ""))
    assert str(parse_kernel(source, None, defines=defines).signature) == "x: *fp64, n: i64"
    with pytest.raises(SourceError, match="several ways"):
        parse_kernel(source, None)
    assert [each.name for each in find_kernels("#ifdef A\n__global__ void k() { }\n#endif", defines=[("A", "1")])] == [
        "k"
    ]


def test_a_header_may_have_set_a_default_before() -> None:
    """After an include of the user's, a default in the source need not be the value that counts."""
    source = "#ifndef N\n#define N 4\n#endif\nstruct S { int a[N]; };\n__global__ void k(S s) { }"
    assert str(parse_kernel(source, None).signature) == "s: {[4xi32]}"
    assert str(parse_kernel("#include <cuda_fp16.h>\n" + source, None).signature) == "s: {[4xi32]}"
    with pytest.raises(SourceError, match="a header may have defined"):
        parse_kernel('#include "config.h"\n' + source, None)


def test_macros_change_along_the_text() -> None:
    """A macro means what it was last defined to be before the place where it stands."""
    source = (
        "#define T float\n__global__ void a(T x) { }\n#undef T\n#define T int\n__global__ void b(T x) { }\n#undef T\n"
        "typedef double T;\n__global__ void c(T x) { }"
    )
    signatures = [str(parse_kernel(source, name).signature) for name in "abc"]
    assert signatures == ["x: fp32", "x: i32", "x: fp64"]


def test_an_explicit_signature_needs_no_types() -> None:
    """With a signature given, types that podium does not know do not matter; the name is still completed."""
    signature = Signature.parse("foo: opaque[24,8], n: i32")
    parsed = parse_kernel("namespace n { __global__ void k(Foo foo, int n) { } }", None, {}, signature)
    assert (parsed.name, parsed.signature) == ("n::k", signature)


def test_the_line_is_that_of_the_definition() -> None:
    """Lines count from 1, through comments, continuations and Windows line ends."""
    source = "/* a\nb */\r\n#define A \\\r\n  1\n__global__ void k(int n);\n\n__global__\nvoid k(int n) { }"
    assert parse_kernel(source, "k").line == 8


def test_several_threads_read_at_once() -> None:
    """Each thread has its own parser; all of them get the same answers."""
    expected = [parse_kernel(source, name) for _, source, name, _ in KERNELS]
    found: list[list[object]] = []

    def read() -> None:
        found.append([parse_kernel(source, name) for _, source, name, _ in KERNELS])

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
