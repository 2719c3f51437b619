// Kernels that use each feature of CUDA that the emulator supports. The same sources run on the emulator and,
// built by nvcc, on a GPU. `record` writes their results as JSON.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Values {
  enum Kind { integers, floats, doubles } kind = integers;
  int ulp = 0;  // by which a GPU's values may differ: 0 where its guide promises the same bits
  std::vector<std::uint64_t> bits;  // of each value
};

using Features = std::map<std::string, Values (*)()>;
Features features();              // features.cu
Features sixteen_bit_features();  // features_half.cu

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// Device memory for the duration of a test.
template <typename T>
class Memory {
 public:
  explicit Memory(const std::vector<T>& values) : size_(values.size()) {
    check(cudaMalloc(&data_, size_ * sizeof(T)));
    check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  explicit Memory(std::size_t size) : Memory(std::vector<T>(size)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> copy(size_);
    check(cudaGetLastError());
    check(cudaMemcpy(copy.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

template <typename T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
constexpr Values::Kind kind_of() {
  return std::is_same<T, float>::value    ? Values::floats
         : std::is_same<T, double>::value ? Values::doubles
                                          : Values::integers;
}

template <typename T>
Values values_of(const Memory<T>& memory, int ulp = 0) {
  Values result{kind_of<T>(), ulp, {}};
  for (T value : memory.values()) result.bits.push_back(bits_of(value));
  return result;
}

// `size` values of T that are zero at first, after `launch` has received a pointer to them.
template <typename T, typename Launch>
Values results(std::size_t size, Launch launch, int ulp = 0) {
  const Memory<T> memory(size);
  launch(memory.data());
  return values_of(memory, ulp);
}
