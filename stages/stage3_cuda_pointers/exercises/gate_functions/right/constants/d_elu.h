template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t d_elu(scalar_t e) {
  return e > scalar_t(0.0) ? static_cast<scalar_t>(1.0) : static_cast<scalar_t>(1.0) + e;
}
