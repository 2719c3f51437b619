#include "square.h"

__device__ float square(float x) { return x * x; }
