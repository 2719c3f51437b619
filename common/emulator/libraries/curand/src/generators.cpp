// cuRAND's generators: arrays of numbers, in the order in which a GPU with many threads writes them.
#include <algorithm>
#include <memory>
#include <vector>

#include "curand.h"
#include "emulator/operands.h"
#include "emulator/random.h"

namespace emulator::curand {
namespace {

// Random numbers, as the threads of a GPU take turns to write them.
class Source {
 public:
  virtual ~Source() = default;
  virtual unsigned next() = 0;
  virtual float uniform() = 0;
  virtual double uniform_double() = 0;
  virtual float2 normals() = 0;
  virtual double2 normals_double() = 0;
  virtual void skip(unsigned long long words) = 0;
};

// Each thread has a sequence of its own, and writes one word, number or pair at a time.
template <typename Random, std::size_t thread_count>
class SourceOfThreads : public Source {
 public:
  explicit SourceOfThreads(unsigned long long seed) {
    threads_.push_back(Random::start(seed, 0));
    while (threads_.size() < thread_count) {
      threads_.push_back(threads_.back());
      skip_sequence(threads_.back());
    }
  }
  unsigned next() override { return turn().next(); }
  float uniform() override { return turn().uniform(); }
  double uniform_double() override { return turn().uniform_double(); }
  float2 normals() override { return turn().normals(); }
  double2 normals_double() override { return turn().normals_double(); }
  void skip(unsigned long long words) override {
    for (Random& random : threads_) random.skip(words / thread_count);
    for (words %= thread_count; words > 0; words--) next();
  }

 private:
  static void skip_sequence(Xorwow& random) { random.skip_sequences(1); }
  static void skip_sequence(Mrg32k3a& random) { random.skip_subsequences(1); }
  Random& turn() { return threads_[turn_++ % thread_count]; }

  std::vector<Random> threads_;
  std::size_t turn_ = 0;
};

// Each thread has a sequence of its own, and writes four numbers: of one block of words, or of two.
class PhiloxSource : public Source {
 public:
  explicit PhiloxSource(unsigned long long seed) : random_(Philox::start(seed, 0)) {}
  unsigned next() override {
    const unsigned word = random_.next();
    if (random_.used == 0) next_thread();
    return word;
  }
  float uniform() override { return curand::uniform(next()); }
  double uniform_double() override {
    const unsigned low = random_.next();
    const double number = curand::uniform_double(low, random_.next());
    if (random_.block.x == 2) next_thread();
    return number;
  }
  float2 normals() override {
    const unsigned radius = next();
    return normal(radius, next());
  }
  double2 normals_double() override {
    const double2 pair = random_.normals_double();
    if (random_.block.x >= 2) next_thread();
    return pair;
  }
  void skip(unsigned long long words) override {
    random_.skip_sequences(words / 4);
    for (words %= 4; words > 0; words--) next();
  }

 private:
  void next_thread() {
    random_.block = uint2{0, 0};
    random_.used = 0;
    random_.skip_sequences(1);
  }

  Philox random_;
};

std::unique_ptr<Source> new_source(curandRngType_t type, unsigned long long seed) {
  if (type == CURAND_RNG_PSEUDO_XORWOW) return std::make_unique<SourceOfThreads<Xorwow, 4096>>(seed);
  if (type == CURAND_RNG_PSEUDO_MRG32K3A) return std::make_unique<SourceOfThreads<Mrg32k3a, 81920>>(seed);
  // The Mersenne twisters have sequences of their own, but not those of a GPU.
  const bool is_other = type != CURAND_RNG_PSEUDO_PHILOX4_32_10;
  return std::make_unique<PhiloxSource>(is_other ? seed + ((unsigned long long)(type) << 48) : seed);
}

}  // namespace
}  // namespace emulator::curand

struct curandGenerator_st {
  curandRngType_t type;
  bool is_on_host;
  unsigned long long seed = 0, offset = 0;
  cudaStream_t stream = nullptr;
  std::unique_ptr<emulator::curand::Source> source{};  // null: not used since the seed or the offset was set

  bool makes_pairs() const { return type == CURAND_RNG_PSEUDO_XORWOW || type == CURAND_RNG_PSEUDO_MRG32K3A; }
};

namespace emulator::curand {
namespace {

std::vector<curandGenerator_t>& generators() {
  static auto& all = *new std::vector<curandGenerator_t>;
  return all;
}

bool is_generator(curandGenerator_t generator) {
  return std::find(generators().begin(), generators().end(), generator) != generators().end();
}

Source& source_of(curandGenerator_t generator) {
  if (!generator->source) {
    generator->source = new_source(generator->type, generator->seed);
    generator->source->skip(generator->offset);
  }
  return *generator->source;
}

curandStatus_t create(const char* name, Position where, curandGenerator_t* generator, curandRngType_t type,
                      bool is_on_host) {
  const Call call(name, where);
  if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
  if (type >= CURAND_RNG_QUASI_DEFAULT && type <= CURAND_RNG_QUASI_SCRAMBLED_SOBOL64)
    add_call_finding(Check::launch, "quasirandom", nullptr,
                     std::string("the emulator does not support quasirandom generators (") + name + ")", "");
  if (!generator || type < CURAND_RNG_PSEUDO_XORWOW || type > CURAND_RNG_PSEUDO_PHILOX4_32_10)
    return CURAND_STATUS_TYPE_ERROR;
  generators().push_back(*generator = new curandGenerator_st{type, is_on_host});
  return CURAND_STATUS_SUCCESS;
}

// Fills an array by a function that writes all its numbers with the words of a source.
template <typename T, typename Fill>
curandStatus_t generate(const char* name, Position where, curandGenerator_t generator, T* numbers,
                        std::size_t count, Fill fill) {
  if (!is_generator(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->is_on_host) return fill(source_of(generator)), CURAND_STATUS_SUCCESS;
  LibraryCall call(name, where);
  call.writes("outputPtr", 1, elements(numbers, std::int64_t(count)));
  const cudaError_t error = call.submit(generator->stream, [=] { fill(source_of(generator)); });
  return error ? CURAND_STATUS_LAUNCH_FAILURE : CURAND_STATUS_SUCCESS;
}

template <typename T, typename Transform>
curandStatus_t generate_normal(const char* name, Position where, curandGenerator_t generator, T* numbers,
                               std::size_t count, Transform transform) {
  if (is_generator(generator) && generator->makes_pairs() && count % 2)
    return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  return generate(name, where, generator, numbers, count, [=](Source& source) {
    const auto pair = [&] {
      if constexpr (sizeof(T) == sizeof(double))
        return source.normals_double();
      else
        return source.normals();
    };
    for (std::size_t i = 0; i < count; i += 2) {
      const auto both = pair();
      numbers[i] = transform(T(both.x));
      if (i + 1 < count) numbers[i + 1] = transform(T(both.y));
    }
  });
}

}  // namespace
}  // namespace emulator::curand

using namespace emulator;
using namespace emulator::curand;

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type, Position where) {
  return create("curandCreateGenerator", where, generator, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type, Position where) {
  return create("curandCreateGeneratorHost", where, generator, type, true);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator, Position where) {
  if (!is_generator(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  const Call call("curandDestroyGenerator", where);
  finish_all();
  std::erase(generators(), generator);
  delete generator;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetVersion(int* version) {
  return version ? (*version = CURAND_VERSION, CURAND_STATUS_SUCCESS) : CURAND_STATUS_OUT_OF_RANGE;
}
curandStatus_t curandGetProperty(libraryPropertyType property, int* value) {
  static constexpr int parts[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH};
  if (!value || property < 0 || property > 2) return CURAND_STATUS_OUT_OF_RANGE;
  return *value = parts[property], CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (!is_generator(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  return generator->stream = stream, CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (!is_generator(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  const Call call("curandSetPseudoRandomGeneratorSeed", {});
  finish_all();  // work that waits still uses the earlier seed
  generator->seed = seed;
  generator->source = nullptr;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!is_generator(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  const Call call("curandSetGeneratorOffset", {});
  finish_all();
  generator->offset = offset;
  generator->source = nullptr;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  if (!is_generator(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  return order == CURAND_ORDERING_QUASI_DEFAULT ? CURAND_STATUS_OUT_OF_RANGE : CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  return is_generator(generator) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int* numbers, std::size_t count,
                              Position where) {
  return generate("curandGenerate", where, generator, numbers, count, [=](Source& source) {
    for (std::size_t i = 0; i < count; i++) numbers[i] = source.next();
  });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* numbers, std::size_t count,
                                     Position where) {
  return generate("curandGenerateUniform", where, generator, numbers, count, [=](Source& source) {
    for (std::size_t i = 0; i < count; i++) numbers[i] = source.uniform();
  });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* numbers, std::size_t count,
                                           Position where) {
  return generate("curandGenerateUniformDouble", where, generator, numbers, count, [=](Source& source) {
    for (std::size_t i = 0; i < count; i++) numbers[i] = source.uniform_double();
  });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* numbers, std::size_t count,
                                    float mean, float deviation, Position where) {
  return generate_normal("curandGenerateNormal", where, generator, numbers, count,
                         [=](float z) { return mean + deviation * z; });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* numbers, std::size_t count,
                                          double mean, double deviation, Position where) {
  return generate_normal("curandGenerateNormalDouble", where, generator, numbers, count,
                         [=](double z) { return mean + deviation * z; });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* numbers, std::size_t count,
                                       float mean, float deviation, Position where) {
  return generate_normal("curandGenerateLogNormal", where, generator, numbers, count,
                         [=](float z) { return std::exp(mean + deviation * z); });
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* numbers, std::size_t count,
                                             double mean, double deviation, Position where) {
  return generate_normal("curandGenerateLogNormalDouble", where, generator, numbers, count,
                         [=](double z) { return std::exp(mean + deviation * z); });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int* numbers, std::size_t count,
                                     double mean, Position where) {
  if (!(mean > 0)) return CURAND_STATUS_OUT_OF_RANGE;
  return generate("curandGeneratePoisson", where, generator, numbers, count, [=](Source& source) {
    for (std::size_t i = 0; i < count; i++) numbers[i] = poisson(mean, [&] { return source.next(); });
  });
}
