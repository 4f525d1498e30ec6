// The integer types of stdint.h, as the compiler has them: hipRTC has some of them, others from version to version. To
// say the same again does no harm; those of 64 bits are other ones before HIP 7, and always there.
#pragma once

typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
#if HIP_VERSION_MAJOR >= 7
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
#endif
