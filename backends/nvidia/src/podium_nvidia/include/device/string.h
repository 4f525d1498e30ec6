#pragma once

// NVRTC declares memcpy and memset.
