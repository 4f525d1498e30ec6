#pragma once
#define OWN 3.0f
