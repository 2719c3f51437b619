// Writes the results of every feature as JSON, one feature per line:
//   {"name": {"kind": ..., "ulp": ..., "bits": ["0x..."]}}
// On the emulator CMake builds it as `record`. On a GPU, in this folder:
//   nvcc -std=c++17 -arch=native features.cu features_half.cu record.cpp -o record && ./record
#include <cuda_runtime.h>

#include <cinttypes>
#include <cstdio>

#include "feature_list.h"

int main() {
  static const char* kinds[] = {"integers", "floats", "doubles"};
  Features all = features();
  for (const auto& feature : sixteen_bit_features()) all.insert(feature);
  const char* separator = "{\n";
  for (const auto& feature : all) {
    const Values values = feature.second();
    std::printf("%s\"%s\": {\"kind\": \"%s\", \"ulp\": %d, \"bits\": [", separator, feature.first.c_str(),
                kinds[values.kind], values.ulp);
    for (std::size_t i = 0; i < values.bits.size(); i++)
      std::printf("%s\"0x%" PRIx64 "\"", i ? ", " : "", values.bits[i]);
    std::printf("]}");
    separator = ",\n";
  }
  std::printf("\n}\n");
}
