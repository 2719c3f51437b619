// Inline PTX: tensor cores by mma.sync, with ldmatrix and stmatrix, in half, bfloat16, TF32, double and int8
// Support: approximate: sums of products are rounded once, and tensor cores cut off some of their bits
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

constexpr int kM = 16, kN = 8, kK = 32;

__device__ uint32_t shared_address(const void* pointer) {
  return uint32_t(__cvta_generic_to_shared(pointer));
}

// c = a * b by one warp, in two steps along k. a and b are stored row by row, and b is transposed on its way.
__global__ void multiply(half* c, const half* a, const half* b) {
  __shared__ alignas(16) half a_tile[kM][kK], b_tile[kK][kN], c_tile[kM][kN];
  const int lane = threadIdx.x;
  for (int i = lane; i < kM * kK; i += 32) (&a_tile[0][0])[i] = a[i];
  for (int i = lane; i < kK * kN; i += 32) (&b_tile[0][0])[i] = b[i];
  __syncwarp();
  float sum[4] = {};
  for (int k = 0; k < kK; k += 16) {
    uint32_t a_part[4], b_part[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a_part[0]), "=r"(a_part[1]), "=r"(a_part[2]), "=r"(a_part[3])
                 : "r"(shared_address(&a_tile[lane % 16][k + lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b_part[0]), "=r"(b_part[1])
                 : "r"(shared_address(&b_tile[k + lane % 16][0])));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a_part[0]), "r"(a_part[1]), "r"(a_part[2]), "r"(a_part[3]), "r"(b_part[0]), "r"(b_part[1]));
  }
  const half2 top = __floats2half2_rn(sum[0], sum[1]), bottom = __floats2half2_rn(sum[2], sum[3]);
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(&c_tile[lane % 16][0])),
      "r"(reinterpret_cast<const uint32_t&>(top)), "r"(reinterpret_cast<const uint32_t&>(bottom))
      : "memory");
  __syncwarp();
  for (int i = lane; i < kM * kN; i += 32) c[i] = (&c_tile[0][0])[i];
}

// Each lane has the elements that the PTX manual says: row lane / 4, and columns from lane % 4 on.
__global__ void other_types(double* doubles, int* integers, float* tf32) {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4;
  double d[2] = {1, 1};  // a[i][k] = i + k, b[k][j] = k - j
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d[0]), "+d"(d[1])
               : "d"(double(row + column)), "d"(double(column - row)));
  for (int i = 0; i < 2; i++) doubles[row * 8 + 2 * column + i] = d[i];
  int n[4] = {};  // a[i][k] = 2 in every place, b[k][j] = j
  const uint32_t twos = 0x02020202, js = row * 0x01010101;
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
      : "+r"(n[0]), "+r"(n[1]), "+r"(n[2]), "+r"(n[3])
      : "r"(twos), "r"(js));
  for (int i = 0; i < 4; i++) integers[(row + i / 2 * 8) * 8 + 2 * column + i % 2] = n[i];
  float f[4] = {0, 0, 0, 0};  // a[i][k] = i + k, b[k][j] = 0.5
  uint32_t part[4];
  for (int i = 0; i < 4; i++)
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(part[i]) : "f"(float(row + i % 2 * 8 + column + i / 2 * 4)));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8}, {%0, "
      "%1, %2, %3};"
      : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
      : "r"(part[0]), "r"(part[1]), "r"(part[2]), "r"(part[3]), "r"(0x3f000000));
  for (int i = 0; i < 4; i++) tf32[(row + i / 2 * 8) * 8 + 2 * column + i % 2] = f[i];
}

int expect(const char* what, int row, int column, double got, double expected) {
  if (got == expected) return 0;
  return std::fprintf(stderr, "%s [%d, %d]: got %g, expected %g\n", what, row, column, got, expected), 1;
}

int main() {
  half *a, *b, *c;
  double* doubles;
  int* integers;
  float* tf32;
  cudaMallocManaged(&a, kM * kK * sizeof(half));
  cudaMallocManaged(&b, kK * kN * sizeof(half));
  cudaMallocManaged(&c, kM * kN * sizeof(half));
  cudaMallocManaged(&doubles, 64 * sizeof(double));
  cudaMallocManaged(&integers, 128 * sizeof(int));
  cudaMallocManaged(&tf32, 128 * sizeof(float));
  for (int i = 0; i < kM * kK; i++) a[i] = __float2half(i * 7 % 11 - 5);
  for (int i = 0; i < kK * kN; i++) b[i] = __float2half(i * 5 % 13 - 6);
  multiply<<<1, 32>>>(c, a, b);
  other_types<<<1, 32>>>(doubles, integers, tf32);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int row = 0; row < kM; row++)
    for (int column = 0; column < kN; column++) {
      float sum = 0, of_double = 1, of_tf32 = 0;
      for (int k = 0; k < kK; k++) sum += __half2float(a[row * kK + k]) * __half2float(b[k * kN + column]);
      for (int k = 0; k < 4; k++) of_double += (row + k) * (k - column);
      for (int k = 0; k < 8; k++) of_tf32 += 0.5f * (row + k);
      wrong |= expect("half", row, column, __half2float(c[row * kN + column]), sum);
      wrong |= expect("int8", row, column, integers[row * 8 + column], 64 * column);
      wrong |= expect("TF32", row, column, tf32[row * 8 + column], of_tf32);
      if (row < 8) wrong |= expect("double", row, column, doubles[row * 8 + column], of_double);
    }
  for (void* memory : {(void*)a, (void*)b, (void*)c, (void*)doubles, (void*)integers, (void*)tf32})
    cudaFree(memory);
  return wrong;
}
