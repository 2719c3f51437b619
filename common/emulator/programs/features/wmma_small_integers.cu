// Tensor cores: nvcuda::wmma (mma.h) for integers of 4 bits and single bits
// Support: yes
#include <mma.h>

#include <cstdio>

using namespace nvcuda;
using namespace nvcuda::wmma::experimental;

constexpr int kSide = 8;
enum class Product { numbers, exclusive_or, bitwise_and };  // nvcc knows bmmaBitOp in device code only

// c = a * b + 1 by one warp. Each row of a, and each column of b, has k elements, packed into words.
template <typename T, int k, Product product>
__global__ void multiply(int* c, const unsigned* a, const unsigned* b) {
  wmma::fragment<wmma::matrix_a, kSide, kSide, k, T, wmma::row_major> a_part;
  wmma::fragment<wmma::matrix_b, kSide, kSide, k, T, wmma::col_major> b_part;
  wmma::fragment<wmma::accumulator, kSide, kSide, k, int> sum;
  wmma::load_matrix_sync(a_part, a, k);
  wmma::load_matrix_sync(b_part, b, k);
  wmma::fill_fragment(sum, 1);
  if constexpr (product == Product::numbers)
    wmma::mma_sync(sum, a_part, b_part, sum);
  else if constexpr (product == Product::exclusive_or)
    wmma::bmma_sync(sum, a_part, b_part, sum);
  else
    wmma::bmma_sync(sum, a_part, b_part, sum, bmmaBitOpAND, bmmaAccumulateOpPOPC);
  wmma::store_matrix_sync(c, sum, kSide, wmma::mem_row_major);
}

// The element `i` of a row of packed elements.
int element(const unsigned* row, int i, int bits, bool is_signed) {
  const int value = int(row[i * bits / 32] >> i * bits % 32 & ((1u << bits) - 1));
  return is_signed && value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}

template <typename T, int k, int bits, Product product = Product::numbers>
int check(const char* name) {
  constexpr int kWords = k * bits / 32;  // in a row
  constexpr bool kIsSigned = std::is_same_v<T, precision::s4>;
  unsigned *a, *b;
  int* c;
  cudaMallocManaged(&a, kSide * kWords * sizeof(unsigned));
  cudaMallocManaged(&b, kSide * kWords * sizeof(unsigned));
  cudaMallocManaged(&c, kSide * kSide * sizeof(int));
  for (int i = 0; i < kSide * kWords; i++)
    a[i] = 2654435761u * unsigned(i + 1), b[i] = 2246822519u * unsigned(i + 7);
  multiply<T, k, product><<<1, 32>>>(c, a, b);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int row = 0; row < kSide; row++)
    for (int column = 0; column < kSide; column++) {
      int expected = 1;
      for (int i = 0; i < k; i++) {
        const int x = element(&a[row * kWords], i, bits, kIsSigned);
        const int y = element(&b[column * kWords], i, bits, kIsSigned);
        expected += product == Product::exclusive_or ? x ^ y : x * y;
      }
      const int got = c[row * kSide + column];
      if (got != expected && !wrong++)
        std::fprintf(stderr, "%s [%d, %d]: got %d, expected %d\n", name, row, column, got, expected);
    }
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  return wrong;
}

// Filling packs the lowest bits of a value into each element.
__global__ void fill(int* is_right) {
  wmma::fragment<wmma::matrix_a, kSide, kSide, 32, precision::u4, wmma::row_major> four_bits;
  wmma::fragment<wmma::matrix_a, kSide, kSide, 128, precision::b1, wmma::row_major> bits;
  wmma::fill_fragment(four_bits, 0x1au);
  wmma::fill_fragment(bits, 3u);
  static_assert(four_bits.num_elements == 8 && four_bits.num_storage_elements == 1);
  static_assert(bits.num_elements == 32 && bits.num_storage_elements == 1);
  if (threadIdx.x == 0) *is_right = four_bits.x[0] == 0xaaaaaaaau && bits.x[0] == 0xffffffffu;
}

int main() {
  int wrong = check<precision::u4, 32, 4>("u4");
  wrong += check<precision::s4, 32, 4>("s4");
  wrong += check<precision::b1, 128, 1, Product::exclusive_or>("b1, exclusive or");
  wrong += check<precision::b1, 128, 1, Product::bitwise_and>("b1, and");
  int* is_right;
  cudaMallocManaged(&is_right, sizeof(int));
  fill<<<1, 32>>>(is_right);
  if (cudaDeviceSynchronize() != cudaSuccess || !*is_right) wrong++;
  cudaFree(is_right);
  return wrong != 0;
}
