template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t sigmoid(scalar_t z) {
  return 1.0 / (1.0 + std::exp(-z));
}
