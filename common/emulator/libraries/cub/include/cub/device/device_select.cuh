// Stands for CUB's header of this name: copies the elements that are selected, in their order.
#pragma once

#include "emulator/cub_device.h"

namespace cub {

struct DeviceSelect {
  template <typename In, typename Out, typename Number, typename Select>
  static cudaError_t If(void* temporary, std::size_t& bytes, In in, Out out, Number selected, long long count,
                        Select select, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const auto body = [=](In from, Out to, Number number) {
      long long found = 0;
      for (long long i = 0; i < count; i++)
        if (select(from[i])) to[found++] = from[i];
      *number = emulator::cub::ValueOf<Number>(found);
    };
    return emulator::cub::run("cub::DeviceSelect::If", "d_in, d_out, d_num_selected_out", temporary, bytes,
                              stream, where, body, in, out, selected);
  }
  template <typename In, typename Flags, typename Out, typename Number>
  static cudaError_t Flagged(void* temporary, std::size_t& bytes, In in, Flags flags, Out out,
                             Number selected, long long count, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const auto body = [=](In from, Flags flagged, Out to, Number number) {
      long long found = 0;
      for (long long i = 0; i < count; i++)
        if (flagged[i]) to[found++] = from[i];
      *number = emulator::cub::ValueOf<Number>(found);
    };
    return emulator::cub::run("cub::DeviceSelect::Flagged", "d_in, d_flags, d_out, d_num_selected_out",
                              temporary, bytes, stream, where, body, in, flags, out, selected);
  }
  template <typename In, typename Out, typename Number>
  static cudaError_t Unique(void* temporary, std::size_t& bytes, In in, Out out, Number selected,
                            long long count, cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const auto body = [=](In from, Out to, Number number) {
      long long found = 0;
      for (long long i = 0; i < count; i++)
        if (i == 0 || !(from[i] == from[i - 1])) to[found++] = from[i];
      *number = emulator::cub::ValueOf<Number>(found);
    };
    return emulator::cub::run("cub::DeviceSelect::Unique", "d_in, d_out, d_num_selected_out", temporary,
                              bytes, stream, where, body, in, out, selected);
  }
};

}  // namespace cub
