// Stands for CUB's header as programs name it that have a clone of CUB's repository in their include path.
#pragma once

#include <cub/cub.cuh>
