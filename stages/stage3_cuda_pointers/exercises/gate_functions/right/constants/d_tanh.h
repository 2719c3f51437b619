template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t d_tanh(scalar_t t) {
  constexpr scalar_t one{1.0};
  return (one - t) * (one + t);
}
