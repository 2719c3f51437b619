template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t elu(scalar_t z) {
  return fmaxf(0, z) + fminf(0, expm1f(z));
}
