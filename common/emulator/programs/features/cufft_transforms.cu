// Libraries: cuFFT, in one to three dimensions, complex and real, with batches and in place
// Support: approximate: computed in double and rounded once, without callbacks or several GPUs
#include <cufft.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>

using Complex = std::complex<double>;

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

struct Sizes {
  int x, y, z;
  int all() const { return x * y * z; }
};

// The definition, term by term.
static std::vector<Complex> transformed(const std::vector<Complex>& in, Sizes n, int sign) {
  std::vector<Complex> out(n.all());
  for (int u = 0; u < n.x; u++)
    for (int v = 0; v < n.y; v++)
      for (int w = 0; w < n.z; w++)
        for (int x = 0; x < n.x; x++)
          for (int y = 0; y < n.y; y++)
            for (int z = 0; z < n.z; z++) {
              const double turns =
                  double(u * x % n.x) / n.x + double(v * y % n.y) / n.y + double(w * z % n.z) / n.z;
              out[(u * n.y + v) * n.z + w] +=
                  in[(x * n.y + y) * n.z + z] * std::polar(1.0, sign * 2 * 3.14159265358979 * turns);
            }
  return out;
}

static std::vector<Complex> numbers(int count, bool is_real = false) {
  std::vector<Complex> all;
  for (int i = 0; i < count; i++) all.push_back({std::sin(3.0 * i + 1), is_real ? 0 : std::cos(5.0 * i)});
  return all;
}

template <typename T>
T* upload(const std::vector<T>& host) {
  T* device;
  cudaMalloc(&device, host.size() * sizeof(T));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

template <typename T>
std::vector<T> download(const T* device, size_t count) {
  std::vector<T> host(count);
  cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost);
  return host;
}

static cufftHandle new_plan(Sizes n, cufftType type) {
  cufftHandle plan = 0;
  const cufftResult result = n.x > 1   ? cufftPlan3d(&plan, n.x, n.y, n.z, type)
                             : n.y > 1 ? cufftPlan2d(&plan, n.y, n.z, type)
                                       : cufftPlan1d(&plan, n.z, type, 1);
  expect("a plan", result == CUFFT_SUCCESS);
  return plan;
}

static bool is_near(Complex a, Complex b, int count) { return std::abs(a - b) < 1e-6 * count; }

static void check_complex(Sizes n) {
  const auto in = numbers(n.all());
  std::vector<cufftComplex> narrow;
  std::vector<cufftDoubleComplex> wide;
  for (Complex x : in) {
    narrow.push_back({float(x.real()), float(x.imag())});
    wide.push_back({x.real(), x.imag()});
  }
  cufftComplex *d_narrow = upload(narrow), *d_out;
  cufftDoubleComplex* d_wide = upload(wide);
  cudaMalloc(&d_out, n.all() * sizeof(cufftComplex));
  cufftHandle plan = new_plan(n, CUFFT_C2C), plan_wide = new_plan(n, CUFFT_Z2Z);
  for (int sign : {CUFFT_FORWARD, CUFFT_INVERSE}) {
    const auto expected = transformed(in, n, sign);
    expect("cufftExecC2C", cufftExecC2C(plan, d_narrow, d_out, sign) == CUFFT_SUCCESS);
    const auto got = download(d_out, n.all());
    bool holds = true;
    for (int i = 0; i < n.all(); i++) holds &= is_near({got[i].x, got[i].y}, expected[i], n.all());
    expect("a complex transform", holds);
  }
  // In place, and back.
  cufftExecZ2Z(plan_wide, d_wide, d_wide, CUFFT_FORWARD);
  cufftExecZ2Z(plan_wide, d_wide, d_wide, CUFFT_INVERSE);
  const auto back = download(d_wide, n.all());
  bool holds = true;
  for (int i = 0; i < n.all(); i++)
    holds &= std::abs(Complex(back[i].x, back[i].y) / double(n.all()) - in[i]) < 1e-12;
  expect("a transform in double and back", holds);
  cufftDestroy(plan);
  cufftDestroy(plan_wide);
  cudaFree(d_narrow);
  cudaFree(d_out);
  cudaFree(d_wide);
}

static void check_real(Sizes n) {
  const int half = n.z / 2 + 1, lines = n.x * n.y;
  const auto in = numbers(n.all(), true), expected = transformed(in, n, CUFFT_FORWARD);
  std::vector<float> real, padded(lines * 2 * half, 1e9f);
  for (Complex x : in) real.push_back(float(x.real()));
  for (int i = 0; i < n.all(); i++) padded[i / n.z * 2 * half + i % n.z] = real[i];
  float *d_real = upload(real), *d_padded = upload(padded);
  cufftComplex* d_out;
  cudaMalloc(&d_out, lines * half * sizeof(cufftComplex));
  cufftHandle forward = new_plan(n, CUFFT_R2C), inverse = new_plan(n, CUFFT_C2R);
  cufftExecR2C(forward, d_real, d_out);
  cufftExecR2C(forward, d_padded, reinterpret_cast<cufftComplex*>(d_padded));
  const auto got = download(d_out, lines * half);
  const auto in_place = download(reinterpret_cast<cufftComplex*>(d_padded), lines * half);
  bool holds = true, holds_in_place = true;
  for (int i = 0; i < lines * half; i++) {
    const Complex one = expected[i / half * n.z + i % half];
    holds &= is_near({got[i].x, got[i].y}, one, n.all());
    holds_in_place &= is_near({in_place[i].x, in_place[i].y}, one, n.all());
  }
  expect("a transform of real numbers", holds);
  expect("a transform of real numbers in place", holds_in_place);
  cufftExecC2R(inverse, d_out, d_real);
  const auto back = download(d_real, n.all());
  holds = true;
  for (int i = 0; i < n.all(); i++) holds &= std::fabs(back[i] / n.all() - real[i]) < 1e-5;
  expect("a transform to real numbers", holds);
  cufftDestroy(forward);
  cufftDestroy(inverse);
  cudaFree(d_real);
  cudaFree(d_padded);
  cudaFree(d_out);
}

// Three transforms of the columns of a matrix, into the rows of another one with padding.
static void check_many() {
  constexpr int n = 10, batch = 3, pitch = 12;
  const auto in = numbers(n * batch);
  std::vector<cufftDoubleComplex> host;
  for (Complex x : in) host.push_back({x.real(), x.imag()});
  cufftDoubleComplex *d_in = upload(host), *d_out;
  cudaMalloc(&d_out, ((batch - 1) * pitch + n) * sizeof(*d_out));
  cudaMemset(d_out, 0, ((batch - 1) * pitch + n) * sizeof(*d_out));
  cufftHandle plan;
  int sizes[] = {n}, in_embed[] = {n}, out_embed[] = {pitch};
  expect("cufftPlanMany", cufftPlanMany(&plan, 1, sizes, in_embed, batch, 1, out_embed, 1, pitch, CUFFT_Z2Z,
                                        batch) == CUFFT_SUCCESS);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cufftSetStream(plan, stream);
  cufftExecZ2Z(plan, d_in, d_out, CUFFT_FORWARD);
  cudaStreamSynchronize(stream);
  const auto got = download(d_out, (batch - 1) * pitch + n);
  bool holds = true;
  for (int b = 0; b < batch; b++) {
    std::vector<Complex> column;
    for (int i = 0; i < n; i++) column.push_back(in[i * batch + b]);
    const auto expected = transformed(column, {1, 1, n}, CUFFT_FORWARD);
    for (int i = 0; i < n; i++)
      holds &= std::abs(Complex(got[b * pitch + i].x, got[b * pitch + i].y) - expected[i]) < 1e-12 * n;
    if (b) holds &= got[b * pitch - 1].x == 0;  // the padding stays
  }
  expect("a batch with strides", holds);
  cufftDestroy(plan);
  cudaStreamDestroy(stream);
  cudaFree(d_in);
  cudaFree(d_out);
}

// A batch of complex transforms in two dimensions whose elements alternate.
static void check_interleaved() {
  constexpr Sizes n = {1, 4, 6};
  constexpr int batch = 2;
  std::vector<cufftComplex> host;
  const auto in = numbers(n.all() * batch);
  for (Complex x : in) host.push_back({float(x.real()), float(x.imag())});
  cufftComplex* data = upload(host);
  cufftHandle plan;
  int sizes[] = {n.y, n.z};
  expect("cufftPlanMany",
         cufftPlanMany(&plan, 2, sizes, sizes, batch, 1, sizes, batch, 1, CUFFT_C2C, batch) == CUFFT_SUCCESS);
  cufftExecC2C(plan, data, data, CUFFT_INVERSE);
  const auto got = download(data, host.size());
  bool holds = true;
  for (int b = 0; b < batch; b++) {
    std::vector<Complex> own;
    for (int i = 0; i < n.all(); i++) own.push_back(in[i * batch + b]);
    const auto expected = transformed(own, n, CUFFT_INVERSE);
    for (int i = 0; i < n.all(); i++)
      holds &= is_near({got[i * batch + b].x, got[i * batch + b].y}, expected[i], n.all());
  }
  expect("an interleaved batch", holds);
  cufftDestroy(plan);
  cudaFree(data);
}

int main() {
  for (int size : {1, 2, 8, 15, 61, 67, 100, 127}) {
    check_complex({1, 1, size});
    check_real({1, 1, size});
  }
  for (Sizes n : {Sizes{1, 6, 10}, Sizes{1, 5, 7}, Sizes{4, 3, 5}, Sizes{2, 4, 8}}) {
    check_complex(n);
    check_real(n);
  }
  check_many();
  check_interleaved();
  cufftHandle plan;
  expect("a size of zero", cufftPlan1d(&plan, 0, CUFFT_C2C, 1) == CUFFT_INVALID_SIZE);
  expect("a plan that does not exist", cufftDestroy(12345) == CUFFT_INVALID_PLAN);
  return wrong != 0;
}
