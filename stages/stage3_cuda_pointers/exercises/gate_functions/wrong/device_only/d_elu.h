template <typename scalar_t>
__device__ __forceinline__ scalar_t d_elu(scalar_t e) {
  return e > 0 ? scalar_t(1) : e + 1;
}
