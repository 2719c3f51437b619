template <class T>
__device__ __host__ __forceinline__ T reciprocal(T x) { return T(1) / x; }

template <typename T>
__host__ __device__ __forceinline__ T sigmoid(T x) {
  const T e = std::exp(x < 0 ? x : -x);
  return (x < 0 ? e : T(1)) * reciprocal(1 + e);
}
