template <typename scalar_t>
__device__ __forceinline__ scalar_t d_tanh(scalar_t t) {
  return 1 - t * t;
}
