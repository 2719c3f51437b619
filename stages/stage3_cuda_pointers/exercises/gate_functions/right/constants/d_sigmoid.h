template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t d_sigmoid(scalar_t s) {
  return s - s * s;
}
