// Libraries: cuRAND in kernels (curand_kernel.h), with XORWOW, MRG32k3a and Philox
// Support: approximate: normal numbers may differ in their last bits, Poisson numbers are others
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>
#include <vector>

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

// The first words of a sequence, and one after a jump.
template <typename State>
__global__ void first_words(unsigned* words, unsigned long long seed, unsigned long long sequence,
                            unsigned long long offset) {
  State state;
  curand_init(seed, sequence, offset, &state);
  for (int i = 0; i < 3; i++) words[i] = curand(&state);
  skipahead(1000003ull, &state);
  words[3] = curand(&state);
}

template <typename State>
void check_words(const char* what, std::vector<unsigned> expected) {
  unsigned *d_words, words[4];
  cudaMalloc(&d_words, sizeof(words));
  first_words<State><<<1, 1>>>(d_words, 1234, 7, 3);
  cudaMemcpy(words, d_words, sizeof(words), cudaMemcpyDeviceToHost);
  bool holds = true;
  for (int i = 0; i < 4; i++) holds &= words[i] == expected[i];
  expect(what, holds);
  cudaFree(d_words);
}

// States in global memory, as programs use them: one kernel starts them, others use them.
template <typename State>
__global__ void start(State* states, unsigned long long seed) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &states[i]);
}

struct Sums {
  double uniform, normal, normal_squares, normal_double, log_normal, poisson, inside;
};

template <typename State>
__global__ void add_up(State* states, Sums* sums, int count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  State state = states[i];
  Sums own = {};
  for (int k = 0; k < count; k++) {
    const float x = curand_uniform(&state), y = curand_uniform(&state), z = curand_normal(&state);
    own.uniform += x;
    own.inside += x * x + y * y <= 1;
    own.normal += z;
    own.normal_squares += z * z;
    own.normal_double += curand_normal_double(&state) + curand_uniform_double(&state);
    own.log_normal += curand_log_normal(&state, 0.5f, 0.25f);
    own.poisson += curand_poisson(&state, 3.5);
  }
  sums[i] = own;
  states[i] = state;
}

template <typename State>
void check_distributions(const char* what) {
  constexpr int threads = 64, count = 64;
  State* states;
  Sums *d_sums, sums[threads], all = {};
  cudaMalloc(&states, threads * sizeof(State));
  cudaMalloc(&d_sums, sizeof(sums));
  start<<<2, threads / 2>>>(states, 42);
  add_up<<<2, threads / 2>>>(states, d_sums, count);
  cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost);
  for (const Sums& one : sums) {
    all.uniform += one.uniform / (threads * count);
    all.inside += one.inside / (threads * count);
    all.normal += one.normal / (threads * count);
    all.normal_squares += one.normal_squares / (threads * count);
    all.normal_double += one.normal_double / (threads * count);
    all.log_normal += one.log_normal / (threads * count);
    all.poisson += one.poisson / (threads * count);
  }
  // Six standard deviations of a mean of 4096 numbers.
  const double six = 6 / 64.0;
  expect(what, std::fabs(all.uniform - 0.5) < 0.29 * six &&
                   std::fabs(4 * all.inside - 3.14159) < 1.65 * six && std::fabs(all.normal) < six &&
                   std::fabs(all.normal_squares - 1) < 1.42 * six &&
                   std::fabs(all.normal_double - 0.5) < 1.05 * six &&
                   std::fabs(all.log_normal - std::exp(0.5 + 0.25 * 0.25 / 2)) < 0.44 * six &&
                   std::fabs(all.poisson - 3.5) < 1.88 * six);
  cudaFree(states);
  cudaFree(d_sums);
}

// Four numbers at a time are those that come one at a time.
__global__ void compare_fours(int* differences) {
  curandStatePhilox4_32_10_t ones, fours;
  curand_init(99, threadIdx.x, threadIdx.x, &ones);
  fours = ones;
  int found = 0;
  for (int k = 0; k < 3; k++) {
    const float4 four = curand_uniform4(&fours);
    for (float x : {four.x, four.y, four.z, four.w}) found += x != curand_uniform(&ones);
    const float4 normal = curand_normal4(&fours);
    for (float x : {normal.x, normal.y, normal.z, normal.w}) found += x != curand_normal(&ones);
  }
  differences[threadIdx.x] = found;
}

int main() {
  check_words<curandState>("XORWOW", {0x13593106, 0xb226ea94, 0x848acb3c, 0xaca76c70});
  check_words<curandStatePhilox4_32_10_t>("Philox", {0x1debf147, 0x324cbeba, 0xacba3cf8, 0x53b37067});
  check_words<curandStateMRG32k3a_t>("MRG32k3a", {0x755e2583, 0x3dbecb9f, 0x34cc77dc, 0x8bd0aac8});
  check_distributions<curandState>("a distribution of XORWOW");
  check_distributions<curandStatePhilox4_32_10_t>("a distribution of Philox");
  check_distributions<curandStateMRG32k3a_t>("a distribution of MRG32k3a");
  int *d_differences, differences[8];
  cudaMalloc(&d_differences, sizeof(differences));
  compare_fours<<<1, 8>>>(d_differences);
  cudaMemcpy(differences, d_differences, sizeof(differences), cudaMemcpyDeviceToHost);
  for (int found : differences) expect("a number of four", found == 0);
  cudaFree(d_differences);
  return wrong != 0;
}
