#pragma once

#include <cuda/std/cstdint>
