#pragma once

#include <cuda/std/cstddef>

#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
