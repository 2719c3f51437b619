constexpr int kUnits = kWarp * size;
__shared__ math_t totals[3][kUnits];
const int thread = threadIdx.y * kWarp + threadIdx.x;
for (int k = thread; k < 3 * kUnits; k += kRows * kWarp) totals[k / kUnits][k % kUnits] = 0;
__syncthreads();
for (int gate = 0; gate < 3; ++gate)
  for (int k = 0; k < size; ++k) atomicAdd(&totals[gate][threadIdx.x * size + k], sum[gate][k]);
__syncthreads();
for (int k = thread; k < 3 * kUnits; k += kRows * kWarp) {
  const int64_t gate = k / kUnits, unit = blockIdx.x * int64_t(kUnits) + k % kUnits;
  if (unit >= state_size) continue;
  sums[(blockIdx.y * int64_t(3) + gate) * state_size + unit] = totals[gate][k % kUnits];
}
