// Libraries: cuRAND, arrays of uniform, normal, log-normal and Poisson numbers (curand.h)
// Support: approximate: XORWOW, MRG32k3a and Philox give a GPU's words, others give other numbers
#include <curand.h>

#include <cmath>
#include <cstdio>
#include <vector>

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

static curandGenerator_t new_generator(curandRngType_t type) {
  curandGenerator_t generator;
  expect("curandCreateGenerator", curandCreateGenerator(&generator, type) == CURAND_STATUS_SUCCESS);
  curandSetPseudoRandomGeneratorSeed(generator, 1234);
  return generator;
}

// `generate` fills an array on the device.
template <typename T, typename Generate>
std::vector<T> numbers(size_t count, Generate generate) {
  T* device;
  std::vector<T> host(count);
  cudaMalloc(&device, count * sizeof(T));
  expect("a call that generates", generate(device) == CURAND_STATUS_SUCCESS);
  cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(device);
  return host;
}

// What a GPU gives for the seed 1234 in the default order: 4096 sequences of XORWOW in turn, 81920 of
// MRG32k3a, and four words of each sequence of Philox.
static void check_values() {
  const size_t count = 5000;
  curandGenerator_t xorwow = new_generator(CURAND_RNG_PSEUDO_DEFAULT);
  auto words = numbers<unsigned>(count, [&](unsigned* x) { return curandGenerate(xorwow, x, count); });
  expect("XORWOW", words[0] == 0x253d5e15 && words[1] == 0xd1f7605a && words[4096] == 0x6f558604);
  curandSetGeneratorOffset(xorwow, 4096);
  words = numbers<unsigned>(10, [&](unsigned* x) { return curandGenerate(xorwow, x, 10); });
  expect("XORWOW after an offset", words[0] == 0x6f558604 && words[1] == 0xed29ae49);
  curandSetGeneratorOffset(xorwow, 0);
  auto normal =
      numbers<float>(count, [&](float* x) { return curandGenerateNormal(xorwow, x, count, 10, 2); });
  expect("normal numbers of XORWOW",
         std::fabs(normal[0] - 11.561947f) < 1e-4f && std::fabs(normal[3] - 11.127093f) < 1e-4f);
  curandSetGeneratorOffset(xorwow, 0);
  const auto uniform =
      numbers<double>(count, [&](double* x) { return curandGenerateUniformDouble(xorwow, x, count); });
  expect("uniform numbers in double",
         uniform[0] == 0x1.bd561cb7abc2bp-2 && uniform[4095] == 0x1.f9f6378fcbadap-1);
  curandDestroyGenerator(xorwow);

  curandGenerator_t mrg = new_generator(CURAND_RNG_PSEUDO_MRG32K3A);
  words = numbers<unsigned>(81921, [&](unsigned* x) { return curandGenerate(mrg, x, 81921); });
  expect("MRG32k3a", words[0] == 0xc96891f0 && words[1] == 0x26f0d612 && words[81920] == 0x9650c684);
  curandSetGeneratorOffset(mrg, 0);
  normal = numbers<float>(4, [&](float* x) { return curandGenerateNormal(mrg, x, 4, 0, 1); });
  expect("normal numbers of MRG32k3a",
         std::fabs(normal[0] + 0.36065355f) < 1e-5f && std::fabs(normal[3] + 0.90161204f) < 1e-5f);
  curandDestroyGenerator(mrg);

  curandGenerator_t philox = new_generator(CURAND_RNG_PSEUDO_PHILOX4_32_10);
  words = numbers<unsigned>(count, [&](unsigned* x) { return curandGenerate(philox, x, count); });
  expect("Philox", words[0] == 0x2090b348 && words[1] == 0xda7cf0ab && words[4] == 0xd115a128);
  curandDestroyGenerator(philox);
}

template <typename T>
void expect_mean(const char* what, const std::vector<T>& numbers, double mean, double deviation) {
  double sum = 0, squares = 0;
  for (T x : numbers) {
    sum += double(x) / double(numbers.size());
    squares += (double(x) - mean) * (double(x) - mean) / double(numbers.size());
  }
  const double near = 6 * deviation / std::sqrt(double(numbers.size()));
  expect(what, std::fabs(sum - mean) < near && std::fabs(std::sqrt(squares) / deviation - 1) < 0.2);
}

static void check_distributions(curandRngType_t type) {
  const size_t count = 10000;
  curandGenerator_t generator = new_generator(type);
  expect_mean("the uniform distribution",
              numbers<float>(count, [&](float* x) { return curandGenerateUniform(generator, x, count); }),
              0.5, std::sqrt(1 / 12.0));
  expect_mean("the normal distribution",
              numbers<double>(
                  count, [&](double* x) { return curandGenerateNormalDouble(generator, x, count, -3, 2); }),
              -3, 2);
  const double mean = std::exp(0.5 + 0.125), deviation = mean * std::sqrt(std::exp(0.25) - 1);
  expect_mean("the log-normal distribution",
              numbers<float>(
                  count, [&](float* x) { return curandGenerateLogNormal(generator, x, count, 0.5f, 0.5f); }),
              mean, deviation);
  for (double rate : {2.5, 1200.0})
    expect_mean("the Poisson distribution",
                numbers<unsigned>(
                    count, [&](unsigned* x) { return curandGeneratePoisson(generator, x, count, rate); }),
                rate, std::sqrt(rate));
  curandDestroyGenerator(generator);
}

int main() {
  check_values();
  for (curandRngType_t type : {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_MTGP32,
                               CURAND_RNG_PSEUDO_MT19937, CURAND_RNG_PSEUDO_PHILOX4_32_10})
    check_distributions(type);

  curandGenerator_t generator;
  float host[4];
  expect("curandCreateGeneratorHost",
         curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS);
  expect("numbers on the host",
         curandGenerateUniform(generator, host, 4) == CURAND_STATUS_SUCCESS && host[0] > 0 && host[3] <= 1);
  curandDestroyGenerator(generator);
  generator = new_generator(CURAND_RNG_PSEUDO_XORWOW);
  expect("an odd count of normal numbers",
         curandGenerateNormal(generator, host, 3, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  curandDestroyGenerator(generator);
  expect("a generator that was destroyed",
         curandGenerateUniform(nullptr, host, 4) == CURAND_STATUS_NOT_INITIALIZED);
  return wrong != 0;
}
