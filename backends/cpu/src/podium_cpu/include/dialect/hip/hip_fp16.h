// Half precision is the same in HIP.
#include "../cuda_fp16.h"
