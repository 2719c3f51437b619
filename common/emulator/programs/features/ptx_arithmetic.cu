// Inline PTX: arithmetic with rounding, bits, conversions, comparisons and predicates, branches
// Support: approximate: approximate instructions such as ex2.approx are computed exactly
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

constexpr int kResults = 40;

__global__ void integers(uint32_t* out, uint32_t a, uint32_t b, int32_t negative) {
  int i = 0;
  asm("add.u32 %0, %1, %2;" : "=r"(out[i++]) : "r"(a), "r"(b));
  asm("sub.s32 %0, %1, %2;" : "=r"(out[i++]) : "r"(a), "r"(b));
  asm("mul.lo.u32 %0, %1, %2;" : "=r"(out[i++]) : "r"(a), "r"(b));
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(out[i++]) : "r"(a), "r"(b));
  asm("shl.b32 %0, %1, 4;" : "=r"(out[i++]) : "r"(a));
  asm("shr.s32 %0, %1, 40;" : "=r"(out[i++]) : "r"(negative));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(out[i++]) : "r"(a), "r"(b), "r"(negative));
  asm("prmt.b32 %0, %1, %2, 0x0e73;" : "=r"(out[i++]) : "r"(a), "r"(b));
  asm("bfe.s32 %0, %1, 8, 4;" : "=r"(out[i++]) : "r"(a));
  asm("bfi.b32 %0, %1, %2, 4, 8;" : "=r"(out[i++]) : "r"(a), "r"(b));
  asm("bfind.u32 %0, %1;" : "=r"(out[i++]) : "r"(b));
  asm("popc.b32 %0, %1;\n\tbrev.b32 %0, %0;" : "=r"(out[i++]) : "r"(a));
  asm("shf.l.wrap.b32 %0, %1, %2, 8;" : "=r"(out[i++]) : "r"(a), "r"(b));
  asm("add.sat.s32 %0, %1, %1;" : "=r"(out[i++]) : "r"(INT32_MIN + 1));
  uint64_t wide;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(wide) : "r"(a), "r"(b), "l"(uint64_t(1)));
  out[i++] = uint32_t(wide >> 32);
  asm("{\n\t.reg .b32 low, high;\n\t"
      "mov.b64 {low, high}, %1;  // the halves are exchanged\n\t"
      "mov.b64 %0, {high, low};\n\t}"
      : "=l"(wide)
      : "l"(wide));
  out[i++] = uint32_t(wide);
}

__global__ void floats(float* out, float a, float b) {
  int i = 0;
  asm("add.rz.f32 %0, %1, %2;" : "=f"(out[i++]) : "f"(a), "f"(b));
  asm("add.rp.f32 %0, %1, %2;" : "=f"(out[i++]) : "f"(a), "f"(b));
  asm("fma.rn.f32 %0, %1, %2, %1;" : "=f"(out[i++]) : "f"(a), "f"(b));
  asm("add.sat.f32 %0, %1, 0f3F800000;" : "=f"(out[i++]) : "f"(a));
  asm("mul.ftz.f32 %0, %1, 1.0;" : "=f"(out[i++]) : "f"(1e-40f));
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(out[i++]) : "f"(a), "f"(b));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out[i++]) : "f"(3.0f));
  asm("rcp.approx.f32 %0, %1;" : "=f"(out[i++]) : "f"(4.0f));
  asm("tanh.approx.f32 %0, %1;" : "=f"(out[i++]) : "f"(0.0f));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(reinterpret_cast<uint32_t&>(out[i++])) : "f"(a));
  int whole;
  asm("cvt.rmi.s32.f32 %0, %1;" : "=r"(whole) : "f"(-2.5f));
  out[i++] = float(whole);
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(1.5f));
  asm("cvt.f32.f16 %0, %1;" : "=f"(out[i++]) : "h"(half));
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(3.0f), "f"(-2.0f));
  asm("fma.rn.bf16x2 %0, %0, %0, %0;" : "+r"(pair));
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.bf16 %0, high;}" : "=f"(out[i++]) : "r"(pair));
  // The larger one is divided, and the number of steps is counted.
  float steps = 0;
  asm("{\n\t"
      ".reg .pred is_less, is_done;\n\t"
      ".reg .f32 x;\n\t"
      "setp.lt.f32 is_less, %1, %2;\n\t"
      "selp.f32 x, %2, %1, is_less;\n"
      "AGAIN:\n\t"
      "setp.le.f32 is_done, x, 0f3F800000;\n\t"
      "@is_done bra DONE;\n\t"
      "mul.f32 x, x, 0.5;\n\t"
      "add.f32 %0, %0, 1.0;\n\t"
      "bra AGAIN;\n"
      "DONE:\n\t"
      "@!is_less add.f32 %0, %0, 100.0;\n\t}"
      : "+f"(steps)
      : "f"(a), "f"(8 * b));
  out[i++] = steps;
}

int expect(const char* what, int i, double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  return std::fprintf(stderr, "%s %d: got %.9g, expected %.9g\n", what, i, got, expected), 1;
}

int main() {
  const uint32_t a = 0x89abcdef, b = 0x01234567;
  const uint32_t of_integers[] = {0x8acf1356,
                                  0x88888888,
                                  a * b,
                                  uint32_t(uint64_t(a) * b >> 32),
                                  0x9abcdef0,
                                  0xffffffff,
                                  a ^ b ^ 0xfffffff0u,
                                  0xef000189,
                                  0xfffffffd,
                                  0x01234ef7,
                                  24,
                                  0x28000000,
                                  0x23456789,
                                  0x80000000,
                                  uint32_t((uint64_t(a) * b + 1) >> 32),
                                  uint32_t((uint64_t(a) * b + 1) >> 32)};
  const float third = 1 / 3.0f, up = std::nextafter(third + 16, 17.0f);
  const float of_floats[] = {third + 16 > 16.0 + third ? std::nextafter(third + 16, 0.0f) : third + 16,
                             third + 16 < 16.0 + third ? up : third + 16,
                             std::fma(third, 16.0f, third),
                             1,
                             0,
                             16,
                             8,
                             0.25f,
                             0,
                             0x1.554p-2f,
                             -3,
                             1.5f,
                             12,
                             7};
  uint32_t* d_integers;
  float* d_floats;
  cudaMallocManaged(&d_integers, kResults * sizeof(uint32_t));
  cudaMallocManaged(&d_floats, kResults * sizeof(float));
  integers<<<1, 1>>>(d_integers, a, b, -16);
  floats<<<1, 1>>>(d_floats, third, 16.0f);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  int i = 0;
  for (uint32_t expected : of_integers) wrong |= expect("integer", i, d_integers[i], expected), i++;
  i = 0;
  for (float expected : of_floats) wrong |= expect("float", i, d_floats[i], expected), i++;
  cudaFree(d_integers);
  cudaFree(d_floats);
  return wrong;
}
