// Stands for CUB's header of this name: counts of samples in bins.
#pragma once

#include "emulator/cub_device.h"

namespace cub {

struct DeviceHistogram {
  // levels - 1 bins of the same width from `lower` to `upper`; samples outside are left out.
  template <typename In, typename Counter, typename Level>
  static cudaError_t HistogramEven(void* temporary, std::size_t& bytes, In samples, Counter* histogram,
                                   int levels, Level lower, Level upper, long long count,
                                   cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const auto body = [=](In from, Counter* bins) {
      for (int bin = 0; bin + 1 < levels; bin++) bins[bin] = 0;
      for (long long i = 0; i < count; i++) {
        const auto sample = from[i];
        if (!(sample < lower) && sample < upper)
          bins[(long long)((double(sample) - double(lower)) * (levels - 1) /
                           (double(upper) - double(lower)))]++;
      }
    };
    return emulator::cub::run("cub::DeviceHistogram::HistogramEven", "d_samples, d_histogram", temporary,
                              bytes, stream, where, body, samples, histogram);
  }
};

}  // namespace cub
