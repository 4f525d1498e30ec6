// hipRTC knows memcpy and memset.
#pragma once
