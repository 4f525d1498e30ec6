/* Python numbers to C values, for every scalar type that a signature can have; for the code that is generated for one.
 *
 * The plain cases are converted here; all others, and everything wrong, by `podium_encode`.
 */
#ifndef PODIUM_SCALARS_H
#define PODIUM_SCALARS_H

#include <string.h>

#include "podium_signature.h"

PODIUM_UNUSED PODIUM_APART static int podium_signed(struct podium_call *call, int index, PyObject *value, int64_t low,
                                                    int64_t high, void *out, size_t size) {
    if (PODIUM_IS_INT(value)) {
        int overflow = 0;
        int64_t number;
        if (PODIUM_UNLIKELY(!podium_short_int(value, &number))) number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow && number >= low && number <= high) {
            if (size == 8) memcpy(out, &number, 8);
            if (size == 4) memcpy(out, &(int32_t){(int32_t)number}, 4);
            if (size == 2) memcpy(out, &(int16_t){(int16_t)number}, 2);
            if (size == 1) memcpy(out, &(int8_t){(int8_t)number}, 1);
            return 0;
        }
    }
    return podium_encode(call, index, value, out, size);
}

PODIUM_UNUSED PODIUM_APART static int podium_unsigned(struct podium_call *call, int index, PyObject *value,
                                                      uint64_t high, void *out, size_t size) {
    uint64_t number;
    if (PODIUM_IS_INT(value) && podium_unsigned_int(value, &number)) {
        if (number <= high) {
            if (size == 8) memcpy(out, &number, 8);
            if (size == 4) memcpy(out, &(uint32_t){(uint32_t)number}, 4);
            if (size == 2) memcpy(out, &(uint16_t){(uint16_t)number}, 2);
            if (size == 1) memcpy(out, &(uint8_t){(uint8_t)number}, 1);
            return 0;
        }
    }
    return podium_encode(call, index, value, out, size);
}

/* Most ints have one digit, and most parameters room for all of those. */
#define PODIUM_SIGNED(bits)                                                                                            \
    PODIUM_INLINE int podium_i##bits(struct podium_call *call, int index, PyObject *value, int##bits##_t *out) {       \
        int64_t number;                                                                                                \
        if (PODIUM_IS_INT(value) && podium_one_digit(value, &number) &&                                                \
            (bits >= 32 || (number >= INT##bits##_MIN && number <= INT##bits##_MAX))) {                                \
            *out = (int##bits##_t)number;                                                                              \
            return 0;                                                                                                  \
        }                                                                                                              \
        return podium_signed(call, index, value, INT##bits##_MIN, INT##bits##_MAX, out, bits / 8);                     \
    }
#define PODIUM_UNSIGNED(bits)                                                                                          \
    PODIUM_INLINE int podium_u##bits(struct podium_call *call, int index, PyObject *value, uint##bits##_t *out) {      \
        int64_t number;                                                                                                \
        if (PODIUM_IS_INT(value) && podium_one_digit(value, &number) && number >= 0 &&                                 \
            (bits >= 32 || number <= (int64_t)UINT##bits##_MAX)) {                                                     \
            *out = (uint##bits##_t)number;                                                                             \
            return 0;                                                                                                  \
        }                                                                                                              \
        return podium_unsigned(call, index, value, UINT##bits##_MAX, out, bits / 8);                                   \
    }
PODIUM_SIGNED(8)
PODIUM_SIGNED(16)
PODIUM_SIGNED(32)
PODIUM_SIGNED(64)
PODIUM_UNSIGNED(8)
PODIUM_UNSIGNED(16)
PODIUM_UNSIGNED(32)
PODIUM_UNSIGNED(64)

PODIUM_UNUSED static int podium_i1(struct podium_call *call, int index, PyObject *value, uint8_t *out) {
    if (value == Py_True || value == Py_False) {
        *out = value == Py_True;
        return 0;
    }
    return podium_encode(call, index, value, out, 1);
}

PODIUM_UNUSED static int podium_fp64(struct podium_call *call, int index, PyObject *value, double *out) {
    if (PODIUM_IS_FLOAT(value)) {
        *out = PyFloat_AsDouble(value);
        return 0;
    }
    return podium_encode(call, index, value, out, 8);
}

PODIUM_UNUSED static int podium_fp32(struct podium_call *call, int index, PyObject *value, float *out) {
    if (PODIUM_IS_FLOAT(value)) {
        *out = (float)PyFloat_AsDouble(value);
        return 0;
    }
    return podium_encode(call, index, value, out, 4);
}

/* Round a double to a smaller IEEE 754 format; podium._arguments.round_to_format is the same in Python. */
PODIUM_UNUSED static uint16_t podium_round_to_format(double value, int exponent_bits, int mantissa_bits) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    uint64_t sign = bits >> 63 << (exponent_bits + mantissa_bits);
    int exponent = (int)(bits >> 52 & 0x7FF);
    uint64_t significand = bits & ((UINT64_C(1) << 52) - 1);
    uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << mantissa_bits;
    if (exponent == 0x7FF)
        return (uint16_t)(sign | infinity | (significand ? UINT64_C(1) << (mantissa_bits - 1) : 0));
    if (exponent) significand |= UINT64_C(1) << 52;
    int field = exponent - 1023 + (1 << (exponent_bits - 1)) - 1;
    int shift = 52 - mantissa_bits + (field < 1 ? 1 - field : 0);
    if (shift > 54) return (uint16_t)sign;
    uint64_t quotient = significand >> shift, remainder = significand & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    quotient += remainder > half || (remainder == half && (quotient & 1));
    uint64_t rounded = quotient + ((uint64_t)(field < 1 ? 0 : field - 1) << mantissa_bits);
    return (uint16_t)(sign | (rounded < infinity ? rounded : infinity));
}

PODIUM_UNUSED static int podium_half(struct podium_call *call, int index, PyObject *value, int exponent_bits,
                                     uint16_t *out) {
    if (PODIUM_IS_FLOAT(value)) {
        *out = podium_round_to_format(PyFloat_AsDouble(value), exponent_bits, 15 - exponent_bits);
        return 0;
    }
    return podium_encode(call, index, value, out, 2);
}
#define podium_fp16(call, index, value, out) podium_half(call, index, value, 5, out)
#define podium_bf16(call, index, value, out) podium_half(call, index, value, 8, out)

#endif
