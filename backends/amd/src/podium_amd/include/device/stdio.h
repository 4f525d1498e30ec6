// hipRTC knows printf.
#pragma once
