// Stands for CUB's header of this name: an array as runs of equal elements.
#pragma once

#include "emulator/cub_device.h"

namespace cub {

struct DeviceRunLengthEncode {
  template <typename In, typename Unique, typename Lengths, typename Number>
  static cudaError_t Encode(void* temporary, std::size_t& bytes, In in, Unique unique, Lengths lengths,
                            Number runs, int count, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const auto body = [=](In from, Unique to, Lengths length, Number number) {
      int found = 0;
      for (int i = 0; i < count; found++) {
        const int first = i;
        to[found] = from[first];
        for (i++; i < count && from[i] == from[first]; i++) {
        }
        length[found] = i - first;
      }
      *number = emulator::cub::ValueOf<Number>(found);
    };
    return emulator::cub::run("cub::DeviceRunLengthEncode::Encode",
                              "d_in, d_unique_out, d_counts_out, d_num_runs_out", temporary, bytes, stream,
                              where, body, in, unique, lengths, runs);
  }
};

}  // namespace cub
