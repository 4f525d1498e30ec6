// NVRTC knows the vector types.
#pragma once
