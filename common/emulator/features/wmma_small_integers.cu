// Tensor cores: nvcuda::wmma (mma.h) for integers of 4 bits and single bits
// Support: refused: the emulator does not support wmma fragments of u4, s4 or b1
#include <mma.h>

using namespace nvcuda;

__global__ void multiply(int* c, const unsigned* a, const unsigned* b) {
  wmma::fragment<wmma::matrix_a, 8, 8, 32, wmma::experimental::precision::u4, wmma::row_major> a_part;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, wmma::experimental::precision::u4, wmma::col_major> b_part;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> sum;
  wmma::load_matrix_sync(a_part, a, 32);
  wmma::load_matrix_sync(b_part, b, 32);
  wmma::fill_fragment(sum, 0);
  wmma::mma_sync(sum, a_part, b_part, sum);
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

int main() { return 0; }
