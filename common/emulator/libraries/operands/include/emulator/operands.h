// Calls of CUDA's libraries: work in a stream that reads and writes memory of the device. The memory of each
// operand is checked as a kernel's accesses are, and reports name the call, the parameter and the argument.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../../../../runtime/src/api/memory/copy_checks.h"
#include "../../../../runtime/src/api/streams/streams.h"
#include "../../../../runtime/src/report/call.h"

EMULATOR_BEGIN
namespace emulator {

// Elements in memory: the rows of `Rows` are the columns of a column-major matrix.
template <typename T>
Rows columns(const T* begin, std::int64_t rows, std::int64_t count, std::int64_t leading,
             std::int64_t stride = 0, std::int64_t batch = 1) {
  const std::size_t element = sizeof(T);
  return {begin, leading * element, rows * element, std::size_t(count), stride * element, std::size_t(batch)};
}
// A vector; with a negative step it begins at its last element in memory.
template <typename T>
Rows elements(const T* begin, std::int64_t count, std::int64_t step = 1) {
  return step == 1 ? columns(begin, count, 1, count) : columns(begin, 1, count, step < 0 ? -step : step);
}

// One operand of a call, after its check.
struct Operand {
  Rows region;
  Allocation* allocation;
  std::string name;  // "A (d_weights)"
  bool is_read, is_written;
};

class LibraryCall {
 public:
  LibraryCall(const char* name, Position where);

  // `argument` is the position of the parameter in the call, from 0 on. Empty operands are left out.
  void reads(const char* parameter, int argument, const Rows& region) {
    add_operand(parameter, argument, region, true, false);
  }
  void writes(const char* parameter, int argument, const Rows& region) {
    add_operand(parameter, argument, region, false, true);
  }
  void updates(const char* parameter, int argument, const Rows& region) {
    add_operand(parameter, argument, region, true, true);
  }
  bool is_refused() const { return is_refused_; }  // an operand's memory does not allow its access

  // Gives the computation to a stream. Returns the error of a refused call, or of the stream.
  cudaError_t submit(cudaStream_t stream, std::function<void()> compute);
  // The same, and the host waits for the result.
  cudaError_t submit_and_wait(cudaStream_t stream, std::function<void()> compute);
  // Computes at once, in work of another call.
  void run(const std::function<void()>& compute);

 private:
  void add_operand(const char* parameter, int argument, const Rows& region, bool is_read, bool is_written);
  void refuse(const char* problem, const Operand& operand, const std::string& what, std::string detail);

  Call call_;
  std::vector<Operand> operands_;
  bool is_refused_ = false;
};

}  // namespace emulator
EMULATOR_END
