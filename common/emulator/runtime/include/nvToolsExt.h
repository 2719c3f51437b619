// Stands for NVTX's header of this name.
#pragma once

#include "nvtx3/nvToolsExt.h"
