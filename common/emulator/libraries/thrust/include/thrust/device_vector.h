// Stands for Thrust's header of this name. As Thrust's does, it brings copies and fills.
#pragma once

#include "emulator/thrust/elementwise.h"
#include "emulator/thrust/memory.h"
