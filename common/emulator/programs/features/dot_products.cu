// Dot products of bytes and halves: __dp4a, __dp2a_lo, __dp2a_hi
// Support: yes
#include <cstdio>

constexpr int kResults = 6;

__global__ void multiply(int* of_int, unsigned* of_unsigned, char4 bytes, short2 halves, int sum) {
  const int packed_bytes = int(0x7f80ff02u), packed_halves = int(0x8000fffeu);
  of_int[0] = __dp4a(bytes, make_char4(1, 2, 3, 4), sum);
  of_int[1] = __dp2a_lo(halves, bytes, sum);
  of_int[2] = __dp2a_hi(halves, bytes, sum);
  of_int[3] = __dp4a(packed_bytes, packed_bytes, sum);
  of_int[4] = __dp2a_lo(packed_halves, packed_bytes, sum);
  of_int[5] = __dp2a_hi(packed_halves, packed_bytes, sum);

  const uchar4 u_bytes = make_uchar4(200, 100, 50, 255);
  const ushort2 u_halves = make_ushort2(60000, 3);
  of_unsigned[0] = __dp4a(u_bytes, u_bytes, 1u);
  of_unsigned[1] = __dp2a_lo(u_halves, u_bytes, 1u);
  of_unsigned[2] = __dp2a_hi(u_halves, u_bytes, 1u);
  of_unsigned[3] = __dp4a(0xffffffffu, 0xffffffffu, 0xfffffff0u);  // modulo 2^32
  of_unsigned[4] = __dp2a_lo(unsigned(packed_halves), unsigned(packed_bytes), 0u);
  of_unsigned[5] = __dp2a_hi(unsigned(packed_halves), unsigned(packed_bytes), 0u);
}

int main() {
  int* of_int;
  unsigned* of_unsigned;
  cudaMallocManaged(&of_int, kResults * sizeof(int));
  cudaMallocManaged(&of_unsigned, kResults * sizeof(unsigned));
  multiply<<<1, 1>>>(of_int, of_unsigned, make_char4(-1, 2, -3, 127), make_short2(-300, 1000), 10);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  constexpr int kOfInt[kResults] = {
      10 - 1 + 4 - 9 + 508,       10 + 300 + 2000,    10 + 900 + 127000,
      10 + 4 + 1 + 16384 + 16129, 10 - 2 * 2 + 32768, 10 + 2 * 128 - 32768 * 127,
  };
  constexpr unsigned kOfUnsigned[kResults] = {
      1 + 40000 + 10000 + 2500 + 65025,
      1 + 12000000 + 300,
      1 + 3000000 + 765,
      4u * 65025 - 16,
      0xfffeu * 2 + 0x8000u * 0xff,
      0xfffeu * 0x80 + 0x8000u * 0x7f,
  };
  int wrong = 0;
  for (int k = 0; k < kResults; k++) {
    wrong += of_int[k] != kOfInt[k];
    wrong += of_unsigned[k] != kOfUnsigned[k];
  }
  if (wrong) std::printf("%d wrong\n", wrong);
  cudaFree(of_int);
  cudaFree(of_unsigned);
  return wrong;
}
