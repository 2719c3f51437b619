// Stands for Thrust's header of this name.
#pragma once

#include "emulator/thrust/iterators.h"
