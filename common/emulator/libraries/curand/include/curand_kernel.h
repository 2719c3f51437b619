// Stands for cuRAND's header of this name: random numbers in kernels.
//
// The words and uniform numbers of the generators are those of a GPU. Logarithms and angles of the normal
// ones are rounded by the C library. Poisson numbers have the right distribution, but are others than on a
// GPU.
#pragma once

#include "curand.h"
#include "emulator/random.h"

// The state of one thread's generator. `cached` numbers are the second ones of a pair of normal numbers.
#define EMULATOR_CURAND_STATE(Name, Generator)  \
  struct Name {                                 \
    using Random = emulator::curand::Generator; \
    Random random;                              \
    bool has_cached, has_cached_double;         \
    float cached;                               \
    double cached_double;                       \
  };
EMULATOR_CURAND_STATE(curandStateXORWOW, Xorwow)
EMULATOR_CURAND_STATE(curandStatePhilox4_32_10, Philox)
EMULATOR_CURAND_STATE(curandStateMRG32k3a, Mrg32k3a)
#undef EMULATOR_CURAND_STATE
using curandStateXORWOW_t = curandStateXORWOW;
using curandState = curandStateXORWOW;
using curandState_t = curandStateXORWOW;
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
using curandStateMRG32k3a_t = curandStateMRG32k3a;

EMULATOR_BEGIN
namespace emulator::curand {

template <typename State>
concept AState = requires(State & state) {
  state.random.normals();
};

// Uses a generator, which is loaded and stored as a whole.
template <AState State, typename Use>
auto use(State* state, Use use) {
  auto random = state->random;
  const auto result = use(random);
  state->random = random;
  return result;
}

}  // namespace emulator::curand

// Sequences of a seed are independent: give each thread its own.
template <emulator::curand::AState State>
void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                 State* state) {
  auto random = State::Random::start(seed, sequence);
  random.skip(offset);
  *state = State{random, false, false, 0, 0};
}
template <emulator::curand::AState State>
void skipahead(unsigned long long count, State* state) {
  state->random.skip(count);
}
template <emulator::curand::AState State>
void skipahead_sequence(unsigned long long count, State* state) {
  state->random.skip_sequences(count);
}

inline void skipahead_subsequence(unsigned long long count, curandStateMRG32k3a* state) {
  state->random.skip_subsequences(count);
}

template <emulator::curand::AState State>
unsigned int curand(State* state) {
  return emulator::curand::use(state, [](auto& random) { return random.next(); });
}
inline uint4 curand4(curandStatePhilox4_32_10* state) {
  return emulator::curand::use(state, [](auto& random) { return random.next4(); });
}

template <emulator::curand::AState State>
float curand_uniform(State* state) {
  return emulator::curand::use(state, [](auto& random) { return random.uniform(); });
}
template <emulator::curand::AState State>
double curand_uniform_double(State* state) {
  return emulator::curand::use(state, [](auto& random) { return random.uniform_double(); });
}
inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  using emulator::curand::uniform;
  const uint4 words = curand4(state);
  return float4{uniform(words.x), uniform(words.y), uniform(words.z), uniform(words.w)};
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  using emulator::curand::uniform_double;
  const uint4 words = curand4(state);
  return double2{uniform_double(words.x, words.y), uniform_double(words.z, words.w)};
}
inline double4 curand_uniform4_double(curandStatePhilox4_32_10* state) {
  const double2 first = curand_uniform2_double(state), second = curand_uniform2_double(state);
  return double4{first.x, first.y, second.x, second.y};
}

template <emulator::curand::AState State>
float2 curand_normal2(State* state) {
  return emulator::curand::use(state, [](auto& random) { return random.normals(); });
}
template <emulator::curand::AState State>
double2 curand_normal2_double(State* state) {
  return emulator::curand::use(state, [](auto& random) { return random.normals_double(); });
}
inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const float2 first = curand_normal2(state), second = curand_normal2(state);
  return float4{first.x, first.y, second.x, second.y};
}
inline double4 curand_normal4_double(curandStatePhilox4_32_10* state) {
  const double2 first = curand_normal2_double(state), second = curand_normal2_double(state);
  return double4{first.x, first.y, second.x, second.y};
}
// One number at a time: the second of a pair is kept for the next call.
template <emulator::curand::AState State>
float curand_normal(State* state) {
  if (state->has_cached) return state->has_cached = false, state->cached;
  const float2 pair = curand_normal2(state);
  state->cached = pair.y;
  state->has_cached = true;
  return pair.x;
}
template <emulator::curand::AState State>
double curand_normal_double(State* state) {
  if (state->has_cached_double) return state->has_cached_double = false, state->cached_double;
  const double2 pair = curand_normal2_double(state);
  state->cached_double = pair.y;
  state->has_cached_double = true;
  return pair.x;
}

template <emulator::curand::AState State>
float curand_log_normal(State* state, float mean, float deviation) {
  return std::exp(mean + deviation * curand_normal(state));
}
template <emulator::curand::AState State>
float2 curand_log_normal2(State* state, float mean, float deviation) {
  const float2 pair = curand_normal2(state);
  return float2{std::exp(mean + deviation * pair.x), std::exp(mean + deviation * pair.y)};
}
inline float4 curand_log_normal4(curandStatePhilox4_32_10* state, float mean, float deviation) {
  const float2 first = curand_log_normal2(state, mean, deviation),
               second = curand_log_normal2(state, mean, deviation);
  return float4{first.x, first.y, second.x, second.y};
}
template <emulator::curand::AState State>
double curand_log_normal_double(State* state, double mean, double deviation) {
  return std::exp(mean + deviation * curand_normal_double(state));
}
template <emulator::curand::AState State>
unsigned int curand_poisson(State* state, double mean) {
  return emulator::curand::poisson(mean, [=] { return curand(state); });
}
EMULATOR_END
