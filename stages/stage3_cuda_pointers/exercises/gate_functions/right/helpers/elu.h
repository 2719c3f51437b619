template <typename Number>
__host__ __device__ __forceinline__ auto elu(Number x) -> Number {
  if constexpr (sizeof(Number) == sizeof(float)) return x > 0 ? x : expm1f(x);
  else return x > 0 ? x : expm1(x);
}
