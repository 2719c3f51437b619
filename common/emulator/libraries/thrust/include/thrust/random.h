// Stands for Thrust's header of this name: random engines, for host and device.
#pragma once

#include <cmath>
#include <random>

namespace thrust {

using std::linear_congruential_engine;
using std::minstd_rand;
using std::minstd_rand0;
using default_random_engine = minstd_rand;

template <typename T = int>
class uniform_int_distribution {
 public:
  explicit uniform_int_distribution(T first = 0, T last = T(~0u >> 1)) : first_(first), last_(last) {}
  template <typename Engine>
  T operator()(Engine& engine) const {
    const double unit = double(engine() - Engine::min()) / (double(Engine::max() - Engine::min()) + 1);
    return T(first_ + std::floor(unit * (double(last_) - double(first_) + 1)));
  }

 private:
  T first_, last_;
};
template <typename T = double>
class uniform_real_distribution {
 public:
  explicit uniform_real_distribution(T low = 0, T high = 1) : low_(low), high_(high) {}
  template <typename Engine>
  T operator()(Engine& engine) const {
    const T unit = T(engine() - Engine::min()) / (T(Engine::max() - Engine::min()) + 1);
    return low_ + unit * (high_ - low_);
  }

 private:
  T low_, high_;
};
template <typename T = double>
class normal_distribution {
 public:
  explicit normal_distribution(T mean = 0, T deviation = 1) : mean_(mean), deviation_(deviation) {}
  template <typename Engine>
  T operator()(Engine& engine) const {
    const uniform_real_distribution<double> unit;
    const double radius = std::sqrt(-2 * std::log(1 - unit(engine)));
    return T(mean_ + deviation_ * radius * std::cos(6.283185307179586 * unit(engine)));
  }

 private:
  T mean_, deviation_;
};
namespace random {
using thrust::default_random_engine;
using thrust::minstd_rand;
using thrust::normal_distribution;
using thrust::uniform_int_distribution;
using thrust::uniform_real_distribution;
}  // namespace random

}  // namespace thrust
