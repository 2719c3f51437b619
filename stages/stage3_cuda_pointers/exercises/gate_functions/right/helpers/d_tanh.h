template <class T>
__forceinline__ __host__ __device__ T square(T x) { return x * x; }

template <class T>
__forceinline__ __device__ __host__ T d_tanh(T output) { return 1 - square(output); }
