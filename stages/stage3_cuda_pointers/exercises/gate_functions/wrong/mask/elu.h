template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t elu(scalar_t z) {
  return (z > 0) * z + (z <= 0) * std::expm1(z);
}
