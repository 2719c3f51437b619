// Stands for CUDA's header of this name: groups of threads that synchronise and exchange values.
#pragma once

#include "emulator/groups_of_blocks.h"
#include "emulator/groups_of_lanes.h"
#include "emulator/partitions.h"
