// Headers: cuComplex.h and math_constants.h
// Support: yes
#include <cuComplex.h>
#include <cuda_runtime.h>
#include <math_constants.h>

#include <cmath>
#include <complex>
#include <cstdio>

__global__ void rotate(cuDoubleComplex* z, cuFloatComplex* quotients, int count) {
  const int i = threadIdx.x;
  const double angle = 2 * CUDART_PI * i / count;
  z[i] = cuCmul(z[i], make_cuDoubleComplex(cos(angle), sin(angle)));
  quotients[i] = cuCdivf(make_cuFloatComplex(1, i), make_cuComplex(i + 1, 2));
}

static int expect_near(const char* what, double got, double expected) {
  if (std::fabs(got - expected) < 1e-6) return 0;
  return fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected), 1;
}

int main() {
  constexpr int count = 16;
  cuDoubleComplex* z;
  cuFloatComplex* quotients;
  cudaMallocManaged(&z, count * sizeof(*z));
  cudaMallocManaged(&quotients, count * sizeof(*quotients));
  for (int i = 0; i < count; i++) z[i] = make_cuDoubleComplex(1, i);
  rotate<<<1, count>>>(z, quotients, count);
  if (cudaDeviceSynchronize()) return fprintf(stderr, "the kernel failed\n"), 1;
  int wrong = 0;
  for (int i = 0; i < count; i++) {
    const std::complex<double> expected =
        std::complex<double>(1, i) * std::polar(1.0, 2 * CUDART_PI * i / count);
    const std::complex<double> quotient = std::complex<double>(1, i) / std::complex<double>(i + 1, 2);
    wrong += expect_near("real part", cuCreal(z[i]), expected.real());
    wrong += expect_near("imaginary part", cuCimag(z[i]), expected.imag());
    wrong += expect_near("magnitude", cuCabs(z[i]), std::abs(expected));
    wrong += expect_near("quotient", cuCrealf(quotients[i]), quotient.real());
    wrong += expect_near("conjugate of the quotient", cuCimagf(cuConjf(quotients[i])), -quotient.imag());
  }
  cudaFree(z);
  cudaFree(quotients);
  return wrong != 0;
}
