#pragma once

__global__ void count_up(int& counter, int by) { counter += by; }
