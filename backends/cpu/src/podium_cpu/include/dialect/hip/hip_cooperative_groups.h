// Cooperative groups are the same in HIP.
#include "../cooperative_groups.h"
