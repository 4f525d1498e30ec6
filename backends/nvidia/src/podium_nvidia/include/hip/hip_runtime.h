// Sources for all backends may name either vendor's header; both stand for the same dialect.
#pragma once
#include <cuda_runtime.h>
