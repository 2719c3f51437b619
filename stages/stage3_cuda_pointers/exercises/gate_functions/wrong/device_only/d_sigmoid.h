template <typename scalar_t>
__device__ __forceinline__ scalar_t d_sigmoid(scalar_t s) {
  return s * (1 - s);
}
