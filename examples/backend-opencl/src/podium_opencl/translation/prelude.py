"""Functions of podium's own in OpenCL C, put into the output where they are used."""

from __future__ import annotations

from string import Template

__all__ = ["EXTENSIONS", "PRELUDE", "helper_text"]

EXTENSIONS = ("cl_khr_fp64", "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics")

# Every name of the user's ends with an underscore in the output, so none can be one of these.
# PoCL (3.0, 3.1) keeps the index of a thread in a variable of the whole process, which functions that it does not put
# into their callers read while other blocks are run: so all functions are put there.
PRELUDE = """\
#define PODIUM_INLINE static inline __attribute__((always_inline))
typedef struct { ushort bits; } podium_half;
typedef struct { ushort bits; } podium_bfloat;
PODIUM_INLINE float podium_half_widen(podium_half x) { return vload_half(0, (const half *)&x.bits); }
PODIUM_INLINE podium_half podium_half_narrow(float x)
{
    podium_half r;
    vstore_half_rte(x, 0, (half *)&r.bits);
    return r;
}
PODIUM_INLINE ushort podium_half_bits(podium_half x) { return x.bits; }
PODIUM_INLINE float podium_bfloat_widen(podium_bfloat x) { return as_float((uint)x.bits << 16); }
PODIUM_INLINE podium_bfloat podium_bfloat_narrow(float x)
{
    uint bits = as_uint(x);
    podium_bfloat r;
    r.bits = (ushort)(isnan(x) ? (bits >> 16 | 0x40u) : ((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
    return r;
}
PODIUM_INLINE ushort podium_bfloat_bits(podium_bfloat x) { return x.bits; }
"""

_HELPERS = {
    "fence": """\
PODIUM_INLINE void podium_fence(void) { mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE); }
""",
    "exact": """\
PODIUM_INLINE float podium_exact_$word(float a, float b)
{
#pragma OPENCL FP_CONTRACT OFF
    return a $operator b;
}
""",
    # OpenCL says of no number that it may become anything, and PoCL (3.1) ends the process for a constant one.
    "integer": """\
PODIUM_INLINE $type $helper($source x) { return isnan(x) ? 0 : convert_${type}_sat_$mode(x); }
""",
    "ffs": """\
PODIUM_INLINE int podium_ffs_$type($type x) { return x ? $bits - (int)clz(x & (0 - x)) : 0; }
""",
    "brev": """\
PODIUM_INLINE $type podium_brev_$type($type x)
{
    $type r = 0;
    for (int i = 0; i < $bits; i++)
        r |= (x >> i & 1) << ($bits - 1 - i);
    return r;
}
""",
    "direct": """\
PODIUM_INLINE $type $helper(volatile __$space $type *p, $type value) { return $prefix$word(p, value); }
""",
    "compare": """\
PODIUM_INLINE $type $helper(volatile __$space $type *p, $type expected, $type value)
{
    return as_$type(${prefix}cmpxchg((volatile __$space $whole *)p, as_$whole(expected), as_$whole(value)));
}
""",
    "loop": """\
PODIUM_INLINE $type $helper(volatile __$space $type *p, $type value)
{
    $whole seen = *(volatile __$space $whole *)p, before;
    do {
        const $type old = as_$type(seen);
        const $type after = $expression;
        before = seen;
        seen = ${prefix}cmpxchg((volatile __$space $whole *)p, before, as_$whole(after));
    } while (seen != before);
    return as_$type(seen);
}
""",
    # The values of all threads lie in local memory between two barriers; lanes follow one another in x, then y, then z.
    "thread": """\
PODIUM_INLINE uint podium_thread(void)
{
    return (uint)((get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0));
}
PODIUM_INLINE uint podium_threads(void) { return (uint)(get_local_size(0) * get_local_size(1) * get_local_size(2)); }
PODIUM_INLINE ulong podium_exchanged(ulong own, uint from, __local ulong *podium_exchange)
{
    podium_exchange[podium_thread()] = own;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const ulong found = podium_exchange[from < podium_threads() ? from : podium_thread()];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return found;
}
PODIUM_INLINE uint podium_ballot(uchar holds, __local ulong *podium_exchange)
{
    const uint thread = podium_thread(), first = thread & ~31u;
    podium_exchange[thread] = holds;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    uint found = 0;
    for (uint lane = 0; lane < 32 && first + lane < podium_threads(); lane++)
        found |= podium_exchange[first + lane] ? 1u << lane : 0u;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return found;
}
PODIUM_INLINE uchar podium_any(uchar holds, __local ulong *podium_exchange)
{
    if (podium_thread() == 0)
        podium_exchange[0] = 0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (holds)
        podium_exchange[0] = 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const uchar found = podium_exchange[0] != 0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return found;
}
PODIUM_INLINE int podium_count(uchar holds, __local ulong *podium_exchange)
{
    podium_exchange[podium_thread()] = holds;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    int found = 0;
    for (uint thread = 0; thread < podium_threads(); thread++)
        found += podium_exchange[thread] ? 1 : 0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return found;
}
PODIUM_INLINE uint podium_source(int way, int operand, int width)
{
    const int thread = (int)podium_thread(), lane = thread & 31;
    width = width < 1 || width > 32 ? 32 : width;
    const int first = lane / width * width;
    int from;
    if (way == 0)
        from = first + (operand & (width - 1));
    else if (way == 1)
        from = lane - operand;
    else if (way == 2)
        from = lane + operand;
    else
        from = lane ^ operand;
    if (way == 3 ? from >= first + width : (from < first || from >= first + width))
        from = lane;
    return (uint)(thread - lane + from);
}
""",
    "match": """\
PODIUM_INLINE uint podium_match(ulong own, uchar active, __local ulong *podium_exchange)
{
    uint found = 0;
    const uint first = podium_thread() & ~31u;
    const uint present = podium_ballot(active, podium_exchange);
    podium_exchange[podium_thread()] = own;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (uint lane = 0; lane < 32 && first + lane < podium_threads(); lane++)
        found |= (present >> lane & 1) && podium_exchange[first + lane] == own ? 1u << lane : 0u;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return found;
}
""",
}


def helper_text(name: str, **values: object) -> str:
    """Return the text of a function of podium's own, with values put in."""
    return Template(_HELPERS[name]).substitute(values)
