#pragma once

__device__ float square(float x);  // in square.cu
