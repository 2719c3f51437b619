// Stands for CUB's header of this name: the reductions of parts of an array.
#pragma once

#include "emulator/cub_device.h"

namespace cub {

struct DeviceSegmentedReduce {
  // Part s has the elements from begins[s] up to, but without, ends[s].
  template <typename In, typename Out, typename Begins, typename Ends, typename Operator, typename T>
  static cudaError_t Reduce(void* temporary, std::size_t& bytes, In in, Out out, long long parts,
                            Begins begins, Ends ends, Operator op, T initial, cudaStream_t stream = nullptr,
                            EMULATOR_HERE) {
    return run("cub::DeviceSegmentedReduce::Reduce", temporary, bytes, in, out, parts, begins, ends, op,
               initial, stream, where);
  }
  template <typename In, typename Out, typename Begins, typename Ends>
  static cudaError_t Sum(void* temporary, std::size_t& bytes, In in, Out out, long long parts, Begins begins,
                         Ends ends, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    using T = emulator::cub::ValueOf<In>;
    return run("cub::DeviceSegmentedReduce::Sum", temporary, bytes, in, out, parts, begins, ends,
               ::cuda::std::plus<>(), T{}, stream, where);
  }

 private:
  template <typename In, typename Out, typename Begins, typename Ends, typename Operator, typename T>
  static cudaError_t run(const char* name, void* temporary, std::size_t& bytes, In in, Out out,
                         long long parts, Begins begins, Ends ends, Operator op, T initial,
                         cudaStream_t stream, emulator::Position where) {
    const auto body = [=](std::size_t part, In from, Out to, Begins first, Ends last) {
      T sum = initial;
      for (long long i = first[part]; i < (long long)(last[part]); i++) sum = op(sum, from[i]);
      to[part] = sum;
    };
    cudaError_t result;
    if (emulator::cub::is_answered(temporary, bytes, emulator::cub::kTemporary, result)) return result;
    return emulator::launch_each(name, "d_in, d_out, d_begin_offsets, d_end_offsets", std::size_t(parts),
                                 stream, where, body, in, out, begins, ends);
  }
};

}  // namespace cub
