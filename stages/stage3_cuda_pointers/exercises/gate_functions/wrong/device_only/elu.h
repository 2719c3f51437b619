template <typename scalar_t>
__device__ __forceinline__ scalar_t elu(scalar_t z) {
  return z > 0 ? z : std::expm1(z);
}
