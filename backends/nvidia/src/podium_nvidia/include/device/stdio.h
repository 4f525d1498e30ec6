#pragma once

// NVRTC declares printf.
