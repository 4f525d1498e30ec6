"""Names of kernels: what may be one, and how it is taken apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium._source import parse_kernel
from podium._source._name_expression import NameExpression, check_name_expression, parse_name_expression
from podium.errors import SourceError


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("saxpy", "saxpy"),
        ("_k1", "_k1"),
        ("ns::saxpy", "ns::saxpy"),
        (" :: ns :: saxpy ", "::ns::saxpy"),
        ("reduce<float,256>", "reduce<float, 256>"),
        ("reduce< float ,\t256 >", "reduce<float, 256>"),
        ("ns::reduce<ns::Op<float>,256>", "ns::reduce<ns::Op<float>, 256>"),
        ("k<A<B<C>>>", "k<A<B<C>>>"),
        ("k<A<B<C> > >", "k<A<B<C>>>"),
        ("k<unsigned   long long>", "k<unsigned long long>"),
        ("k<const float *, float*const*, int&, T&&>", "k<const float*, float* const*, int&, T&&>"),
        ("k<typename A<int>::type>", "k<typename A<int>::type>"),
        ("k<-1, 0x1F, 0b11, 42u, 7ULL, 1.5f, 2e-3>", "k<-1, 0x1F, 0b11, 42u, 7ULL, 1.5f, 2e-3>"),
        ("k<true, ::ns::E::A>", "k<true, ::ns::E::A>"),
        ("k<>", "k<>"),
    ],
)
def test_names_are_made_uniform(name: str, normal: str) -> None:
    """White space does not make two names of one; what was made uniform stays as it is."""
    assert check_name_expression(name) == normal
    assert check_name_expression(normal) == normal


HOSTILE = [
    "",
    " ",
    "a b",
    "k; int x",
    "k\n#include </etc/passwd>",
    "k\r",
    "k\\",
    "k\\\n",
    'k"',
    "k'",
    "k#",
    "k/**/",
    "k//",
    "k()",
    "k<(1)>",
    "k<1>2>",
    "k<1",
    "k>",
    "k<a>>",
    "k<,>",
    "k<a,>",
    "k<,a>",
    "k<a><b>",
    "k<a>::b",
    "k::",
    "::",
    "k::::a",
    "k::<a>",
    "k,a",
    "k*",
    "k&",
    "*k",
    "1k",
    "k<1a>",
    "k<1 2>",
    "k<1::a>",
    "k<a 1>",
    "k<1*>",
    "k<-a>",
    "k<a-1>",
    "k<a+1>",
    "k<'a'>",
    'k<"a">',
    "k<{}>",
    "k<[]>",
    "k<...>",
    "k@plt",
    "k$",
    "k%s",
    "k`id`",
    "$(id)",
    "../k",
    "k\0",
    "k\x7f",
    "größe",
    "k\u200b",
    "k\u00a0",
    "\ud800",
    "k٣",
    "k<٣>",
    "k<" * 65 + "a" + ">" * 65,
    "k" * 4097,
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_are_refused(name: str) -> None:
    """Nothing that could end a name and begin code, a path or a command passes."""
    with pytest.raises(SourceError, match="name of a kernel"):
        check_name_expression(name)
    with pytest.raises(SourceError):
        parse_kernel("__global__ void k(int n) { }", name)


def test_a_name_is_a_text() -> None:
    """Anything but a string is refused by value."""
    with pytest.raises(SourceError, match="not 3"):
        check_name_expression(3)  # type: ignore[arg-type]


def test_names_are_taken_apart() -> None:
    """Scopes, the name itself and the arguments at the top level come out separately."""
    assert parse_name_expression("a::b::k<A<int, 3>, ::c::D*, 256>") == NameExpression(
        "a::b::k<A<int, 3>, ::c::D*, 256>", ("a", "b"), "k", ("A<int, 3>", "::c::D*", "256"), False
    )
    assert parse_name_expression("::k") == NameExpression("::k", (), "k", None, True)
    assert parse_name_expression("k<>").arguments == ()


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text("ab1_:<>,*&- \n\"'\\;#(){}", max_size=30)))
def test_what_passes_has_only_harmless_characters(text: str) -> None:
    """Whatever is let through consists of the characters of names, and is its own normal form."""
    try:
        name = check_name_expression(text)
    except SourceError:
        return
    assert re.fullmatch(r"[A-Za-z0-9_:<>,*&. +-]+", name, re.ASCII)
    assert name.count("<") == name.count(">")
    assert check_name_expression(name) == name
