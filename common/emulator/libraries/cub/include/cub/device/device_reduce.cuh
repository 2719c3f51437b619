// Stands for CUB's header of this name: reductions of arrays, in the order of the elements.
#pragma once

#include <limits>

#include "emulator/cub_device.h"

namespace cub {

struct DeviceReduce {
  template <typename In, typename Out, typename Operator, typename T>
  static cudaError_t Reduce(void* temporary, std::size_t& bytes, In in, Out out, long long count, Operator op,
                            T initial, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return run("cub::DeviceReduce::Reduce", temporary, bytes, in, out, count, op, initial, stream, where);
  }
  template <typename In, typename Out>
  static cudaError_t Sum(void* temporary, std::size_t& bytes, In in, Out out, long long count,
                         cudaStream_t stream = nullptr, EMULATOR_HERE) {
    using T = emulator::cub::ValueOf<In>;
    return run("cub::DeviceReduce::Sum", temporary, bytes, in, out, count, ::cub::Sum(), T{}, stream, where);
  }
  template <typename In, typename Out>
  static cudaError_t Max(void* temporary, std::size_t& bytes, In in, Out out, long long count,
                         cudaStream_t stream = nullptr, EMULATOR_HERE) {
    using T = emulator::cub::ValueOf<In>;
    return run("cub::DeviceReduce::Max", temporary, bytes, in, out, count, ::cub::Max(),
               std::numeric_limits<T>::lowest(), stream, where);
  }
  template <typename In, typename Out>
  static cudaError_t Min(void* temporary, std::size_t& bytes, In in, Out out, long long count,
                         cudaStream_t stream = nullptr, EMULATOR_HERE) {
    using T = emulator::cub::ValueOf<In>;
    return run("cub::DeviceReduce::Min", temporary, bytes, in, out, count, ::cub::Min(),
               std::numeric_limits<T>::max(), stream, where);
  }

 private:
  template <typename In, typename Out, typename Operator, typename T>
  static cudaError_t run(const char* name, void* temporary, std::size_t& bytes, In in, Out out,
                         long long count, Operator op, T initial, cudaStream_t stream,
                         emulator::Position where) {
    const auto body = [=](In from, Out to) {
      T sum = initial;
      for (long long i = 0; i < count; i++) sum = op(sum, from[i]);
      *to = sum;
    };
    return emulator::cub::run(name, "d_in, d_out", temporary, bytes, stream, where, body, in, out);
  }
};

}  // namespace cub
