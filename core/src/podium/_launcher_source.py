"""The C source that is generated for one signature shape; the rest of a launcher is the same for all of them."""

from __future__ import annotations

from podium._parameters import Layout
from podium._signature import Parameter, Signature

__all__ = ["signature_source"]

_C_TYPES = {
    "i1": "uint8_t",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "fp32": "float",
    "fp64": "double",
}


def signature_source(parameters: tuple[Parameter, ...], scratch: int) -> str:
    """Write the C for parameters that are followed by `scratch` hidden pointers; podium_signature.h says what it has.

    It depends on the types' shapes only: nothing that a user can name gets into C. The compiler is made to compare the
    places of the values with those that the interpreted level gives them, and that binaries are compared with.
    """
    members, unpack, addresses, places = [], [], [], []
    offsets = iter(Layout(Signature(parameters), scratch).offsets)
    for index, parameter in enumerate(parameters):
        kind, member = parameter.type.kind, f"p{index}"
        if kind == "constexpr":
            continue
        place = f"call, {index}, args[{index}]"
        if kind == "pointer":
            members.append(f"uint64_t {member};")
            unpack.append(f"podium_pointer({place}, {int(not parameter.type.const)}, &values->{member})")
        elif kind == "struct":
            size, alignment = parameter.type.size, parameter.type.alignment
            members.append(f"_Alignas({alignment}) unsigned char {member}[{size}];")
            unpack.append(f"podium_encode({place}, values->{member}, {size})")
        else:
            members.append(f"{_C_TYPES[parameter.type.spelling]} {member};")
            unpack.append(f"podium_{parameter.type.spelling}({place}, &values->{member})")
        addresses.append(f"&values->{member}")
        places.append(f"PODIUM_IS_AT({member}, {next(offsets)}, {parameter.type.size})")
    if scratch:
        members.append(f"uint64_t scratch[{scratch}];")
        addresses += [f"&values->scratch[{which}]" for which in range(scratch)]
        places.append(f"PODIUM_IS_AT(scratch, {next(offsets)}, {8 * scratch})")
    pointers = sum(parameter.type.kind == "pointer" for parameter in parameters)
    counts = (len(parameters), pointers, scratch, len(addresses))
    offset = "offsetof(struct podium_values, scratch)" if scratch else "0"
    lines = [
        '#include "podium_scalars.h"',
        "struct podium_values {",
        *(f"    {member}" for member in members or ["char none;"]),
        "};",
        *(f"{place};" for place in places),
        "int podium_unpack(struct podium_call *call, PyObject *const *args, struct podium_values *values) {",
        *(f"    if (PODIUM_UNLIKELY({call} < 0)) return -1;" for call in unpack),
        "    (void)call, (void)args, (void)values;",
        "    return 0;",
        "}",
        "void podium_addresses(struct podium_values *values, void **addresses) {",
        *(f"    addresses[{position}] = {address};" for position, address in enumerate(addresses)),
        "    (void)values, (void)addresses;",
        "}",
        "const struct podium_signature podium_signature = {",
        f"    {', '.join(map(str, counts))}, sizeof(struct podium_values), _Alignof(struct podium_values), {offset}}};",
    ]
    return "\n".join([*lines, ""])
