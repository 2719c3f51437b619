template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t sigmoid(scalar_t z) {
  const scalar_t e = std::exp(z);
  return e / (1 + e);
}
