// Tensor cores: nvcuda::wmma (mma.h) for half, bfloat16, TF32, int8 and double, in every shape
// Support: approximate: sums of products are rounded once, and tensor cores cut off some of their bits
#include <mma.h>

#include <cstdio>

using namespace nvcuda;

__host__ __device__ float number(int i) { return float(i * 37 % 9 - 4); }

// c = a * b + 1 by one warp. a is stored row by row, b column by column.
template <int m, int n, int k, typename T, typename Stored, typename Sum>
__global__ void multiply(Sum* c, const Stored* a, const Stored* b) {
  wmma::fragment<wmma::matrix_a, m, n, k, T, wmma::row_major> a_part;
  wmma::fragment<wmma::matrix_b, m, n, k, T, wmma::col_major> b_part;
  wmma::fragment<wmma::accumulator, m, n, k, Sum> sum;
  wmma::load_matrix_sync(a_part, a, 32);
  wmma::load_matrix_sync(b_part, b, 32);
  wmma::fill_fragment(sum, Sum(0));
  wmma::mma_sync(sum, a_part, b_part, sum);
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] = Sum(float(sum.x[i]) + 1.0f);
  wmma::store_matrix_sync(c, sum, 32, wmma::mem_row_major);
}

template <int m, int n, int k, typename T, typename Stored, typename Sum>
int check(const char* name) {
  Stored *a, *b;
  Sum* c;
  cudaMallocManaged(&a, m * 32 * sizeof(Stored));
  cudaMallocManaged(&b, n * 32 * sizeof(Stored));
  cudaMallocManaged(&c, m * 32 * sizeof(Sum));
  for (int i = 0; i < m * 32; i++) a[i] = Stored(number(i) + 4);
  for (int i = 0; i < n * 32; i++) b[i] = Stored(number(i + 5) + 4);
  multiply<m, n, k, T><<<1, 32>>>(c, a, b);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int row = 0; row < m; row++)
    for (int column = 0; column < n; column++) {
      float expected = 1;
      for (int i = 0; i < k; i++) expected += float(a[row * 32 + i]) * float(b[column * 32 + i]);
      const float got = float(c[row * 32 + column]);
      if (got != expected && !wrong++)
        std::fprintf(stderr, "%s [%d, %d]: got %g, expected %g\n", name, row, column, got, expected);
    }
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  return wrong;
}

int main() {
  int wrong = check<16, 16, 16, half, half, float>("half, 16 x 16 x 16");
  wrong += check<32, 8, 16, half, half, half>("half, 32 x 8 x 16");
  wrong += check<8, 32, 16, half, half, float>("half, 8 x 32 x 16");
  wrong += check<16, 16, 16, __nv_bfloat16, __nv_bfloat16, float>("bfloat16, 16 x 16 x 16");
  wrong += check<32, 8, 16, __nv_bfloat16, __nv_bfloat16, float>("bfloat16, 32 x 8 x 16");
  wrong += check<16, 16, 8, wmma::precision::tf32, float, float>("TF32, 16 x 16 x 8");
  wrong += check<16, 16, 16, signed char, signed char, int>("int8, 16 x 16 x 16");
  wrong += check<8, 32, 16, unsigned char, unsigned char, int>("unsigned int8, 8 x 32 x 16");
  wrong += check<8, 8, 4, double, double, double>("double, 8 x 8 x 4");
  return wrong != 0;
}
