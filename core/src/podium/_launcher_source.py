"""The C source of a launcher: the backend's template with the code for one signature shape put in."""

from __future__ import annotations

from podium._signature import Parameter

__all__ = ["TOKEN", "launcher_source"]

TOKEN = "/* @PODIUM_SIGNATURE@ */"

_C_TYPES = {
    "i1": "uint8_t",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "fp32": "float",
    "fp64": "double",
}


def launcher_source(template: str, parameters: tuple[Parameter, ...], scratch: int) -> str:
    """Put the code for the parameters, followed by `scratch` hidden pointers, into a template.

    The result depends on the types' shapes only: nothing that a user can name gets into C.
    Raises ValueError if the template does not have the token exactly once.
    """
    if template.count(TOKEN) != 1:
        raise ValueError(
            f"A launcher template has the line {TOKEN} exactly once; this one has it {template.count(TOKEN)} times"
        )
    return template.replace(TOKEN, _signature_code(parameters, scratch))


def _signature_code(parameters: tuple[Parameter, ...], scratch: int) -> str:
    members, unpack, addresses = [], [], []
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
    if scratch:
        members.append(f"uint64_t scratch[{scratch}];")
        addresses += [f"&values->scratch[{which}]" for which in range(scratch)]
    pointers = sum(parameter.type.kind == "pointer" for parameter in parameters)
    lines = [
        f"#define PODIUM_ARGUMENTS {len(parameters)}",
        f"#define PODIUM_POINTERS {pointers}",
        f"#define PODIUM_SCRATCH {scratch}",
        f"#define PODIUM_PARAMETERS {len(addresses)}",
        "struct podium_values {",
        *(f"    {member}" for member in members or ["char none;"]),
        "};",
        "static int podium_unpack(struct podium_call *call, PyObject *const *args, struct podium_values *values) {",
        *(f"    if ({call} < 0) return -1;" for call in unpack),
        "    (void)call, (void)args, (void)values;",
        "    return 0;",
        "}",
        "static void podium_addresses(struct podium_values *values, void **addresses) {",
        *(f"    addresses[{position}] = {address};" for position, address in enumerate(addresses)),
        "    (void)values, (void)addresses;",
        "}",
    ]
    return "\n".join(lines)
