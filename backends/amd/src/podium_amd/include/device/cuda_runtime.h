// hipRTC knows what kernels can use of it.
#pragma once
