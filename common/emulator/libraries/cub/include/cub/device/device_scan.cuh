// Stands for CUB's header of this name: prefix sums and other scans of arrays.
#pragma once

#include "emulator/cub_device.h"

namespace cub {

struct DeviceScan {
  template <typename In, typename Out, typename Operator, typename T>
  static cudaError_t ExclusiveScan(void* temporary, std::size_t& bytes, In in, Out out, Operator op,
                                   T initial, long long count, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return exclusive("cub::DeviceScan::ExclusiveScan", temporary, bytes, in, out, op, initial, count, stream,
                     where);
  }
  template <typename In, typename Out>
  static cudaError_t ExclusiveSum(void* temporary, std::size_t& bytes, In in, Out out, long long count,
                                  cudaStream_t stream = nullptr, EMULATOR_HERE) {
    using T = emulator::cub::ValueOf<In>;
    return exclusive("cub::DeviceScan::ExclusiveSum", temporary, bytes, in, out, ::cuda::std::plus<>(), T{},
                     count, stream, where);
  }
  template <typename In, typename Out, typename Operator>
  static cudaError_t InclusiveScan(void* temporary, std::size_t& bytes, In in, Out out, Operator op,
                                   long long count, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return inclusive("cub::DeviceScan::InclusiveScan", temporary, bytes, in, out, op, count, stream, where);
  }
  template <typename In, typename Out>
  static cudaError_t InclusiveSum(void* temporary, std::size_t& bytes, In in, Out out, long long count,
                                  cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return inclusive("cub::DeviceScan::InclusiveSum", temporary, bytes, in, out, ::cuda::std::plus<>(), count,
                     stream, where);
  }

 private:
  template <typename In, typename Out, typename Operator, typename T>
  static cudaError_t exclusive(const char* name, void* temporary, std::size_t& bytes, In in, Out out,
                               Operator op, T initial, long long count, cudaStream_t stream,
                               emulator::Position where) {
    const auto body = [=](In from, Out to) {
      T sum = initial;
      for (long long i = 0; i < count; i++) {
        const auto next = op(sum, from[i]);  // `to` may be `from`
        to[i] = sum;
        sum = next;
      }
    };
    return emulator::cub::run(name, "d_in, d_out", temporary, bytes, stream, where, body, in, out);
  }
  template <typename In, typename Out, typename Operator>
  static cudaError_t inclusive(const char* name, void* temporary, std::size_t& bytes, In in, Out out,
                               Operator op, long long count, cudaStream_t stream, emulator::Position where) {
    const auto body = [=](In from, Out to) {
      if (count <= 0) return;
      emulator::cub::ValueOf<In> sum = from[0];
      to[0] = sum;
      for (long long i = 1; i < count; i++) to[i] = sum = op(sum, from[i]);
    };
    return emulator::cub::run(name, "d_in, d_out", temporary, bytes, stream, where, body, in, out);
  }
};

}  // namespace cub
