// Stands for NVTX's header of this name.
#pragma once

#include "nvToolsExt.h"
