#pragma once

// NVRTC declares abs, malloc and free.
