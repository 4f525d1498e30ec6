// The CUDA dialect of C++ on the host. It is included in front of every kernel source; rounding.h and simd.h
// are included where a source may need them.
#ifndef PODIUM_CPU_H
#define PODIUM_CPU_H

#define __PODIUM_CPU__ 1

#include "podium_cpu/standard.h"
#include "podium_cpu/qualifiers.h"
#include "podium_cpu/vectors.h"
#include "podium_cpu/launch.h"
#include "podium_cpu/barrier.h"
#include "podium_cpu/warp.h"
#include "podium_cpu/atomic.h"
#include "podium_cpu/integer.h"
#include "podium_cpu/math.h"
#include "podium_cpu/entry.h"

#endif
