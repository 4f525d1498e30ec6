// hipRTC knows __half and __half2; here are names that only CUDA has.
#pragma once

typedef __half nv_half;
typedef __half2 nv_half2;
