// What the rewriter makes of inline PTX: each instruction is a call of a function in emulator/ptx/.
#pragma once

#include "emulator/ptx/arithmetic.h"
#include "emulator/ptx/bits.h"
#include "emulator/ptx/convert.h"
#include "emulator/ptx/matrix.h"
#include "emulator/ptx/mbarrier.h"
#include "emulator/ptx/memory.h"
#include "emulator/ptx/registers.h"
#include "emulator/ptx/warp.h"
