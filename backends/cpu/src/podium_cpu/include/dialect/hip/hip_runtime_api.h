// All that this header stands for is part of the dialect already.
#include "../../podium_cpu.h"
