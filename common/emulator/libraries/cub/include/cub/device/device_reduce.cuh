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
    return run("cub::DeviceReduce::Sum", temporary, bytes, in, out, count, ::cuda::std::plus<>(), T{}, stream,
               where);
  }
  template <typename In, typename Out>
  static cudaError_t Max(void* temporary, std::size_t& bytes, In in, Out out, long long count,
                         cudaStream_t stream = nullptr, EMULATOR_HERE) {
    using T = emulator::cub::ValueOf<In>;
    return run("cub::DeviceReduce::Max", temporary, bytes, in, out, count, ::cuda::maximum<>(),
               std::numeric_limits<T>::lowest(), stream, where);
  }
  template <typename In, typename Out>
  static cudaError_t Min(void* temporary, std::size_t& bytes, In in, Out out, long long count,
                         cudaStream_t stream = nullptr, EMULATOR_HERE) {
    using T = emulator::cub::ValueOf<In>;
    return run("cub::DeviceReduce::Min", temporary, bytes, in, out, count, ::cuda::minimum<>(),
               std::numeric_limits<T>::max(), stream, where);
  }

  // The first element that is largest or smallest, with its index as the key.
  template <typename In, typename Value>
  static cudaError_t ArgMax(void* temporary, std::size_t& bytes, In in, KeyValuePair<int, Value>* out,
                            int count, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return best("cub::DeviceReduce::ArgMax", temporary, bytes, in, out, count, ::cub::ArgMax(), stream,
                where);
  }
  template <typename In, typename Value>
  static cudaError_t ArgMin(void* temporary, std::size_t& bytes, In in, KeyValuePair<int, Value>* out,
                            int count, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return best("cub::DeviceReduce::ArgMin", temporary, bytes, in, out, count, ::cub::ArgMin(), stream,
                where);
  }
  // The reductions of adjacent values with equal keys.
  template <typename Keys, typename OutKeys, typename Values, typename OutValues, typename Number,
            typename Operator>
  static cudaError_t ReduceByKey(void* temporary, std::size_t& bytes, Keys keys, OutKeys out_keys,
                                 Values values, OutValues out_values, Number runs, Operator op, int count,
                                 cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const auto body = [=](Keys key, OutKeys to_keys, Values value, OutValues to_values, Number number) {
      int found = 0;
      for (int i = 0; i < count; found++) {
        const emulator::cub::ValueOf<Keys> own = key[i];
        emulator::cub::ValueOf<Values> sum = value[i];
        for (i++; i < count && key[i] == own; i++) sum = op(sum, value[i]);
        to_keys[found] = own;
        to_values[found] = sum;
      }
      *number = emulator::cub::ValueOf<Number>(found);
    };
    return emulator::cub::run("cub::DeviceReduce::ReduceByKey",
                              "d_keys_in, d_unique_out, d_values_in, d_aggregates_out, d_num_runs_out",
                              temporary, bytes, stream, where, body, keys, out_keys, values, out_values,
                              runs);
  }

 private:
  template <typename In, typename Value, typename Operator>
  static cudaError_t best(const char* name, void* temporary, std::size_t& bytes, In in,
                          KeyValuePair<int, Value>* out, int count, Operator op, cudaStream_t stream,
                          emulator::Position where) {
    using Pair = KeyValuePair<int, Value>;
    const auto body = [=](In from, Pair* to) {
      Pair found{0, from[0]};
      for (int i = 1; i < count; i++) found = op(found, Pair{i, from[i]});
      *to = found;
    };
    return emulator::cub::run(name, "d_in, d_out", temporary, bytes, stream, where, body, in, out);
  }
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
