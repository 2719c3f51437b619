// `__device__`, `__constant__` and `__managed__` variables: known by name, copied to and from.
#include <cstring>

#include "../../memory/pages.h"
#include "../../races/initialisation.h"
#include "../../report/call.h"
#include "copies.h"
#include "emulator/memory_api.h"

namespace emulator {
namespace {

// Whether it is a device variable. A variable that a macro declared is registered here.
bool is_variable(const void* symbol, std::size_t size, int argument) {
  if (find_allocation(symbol)) return true;
  if (!is_symbol(symbol)) return false;
  const Call& call = *Call::under_way();
  new_variable(symbol, size, {}, argument_text(call.name, call.where, argument).c_str(), false, call.where);
  return true;
}

cudaError_t no_symbol(int argument) {
  const Call& call = *Call::under_way();
  add_call_finding(Check::memory, "symbol", nullptr,
                   std::string(call.name) + " is given " + argument_text(call.name, call.where, argument) +
                       ", which is not a __device__ or __constant__ variable",
                   "pass the variable itself, not its address, its name in quotes or another pointer");
  return fail(cudaErrorInvalidSymbol);
}

}  // namespace

bool new_variable(const volatile void* symbol, std::size_t size, const ArrayShape& shape, const char* name,
                  bool is_constant, Position where) {
  const auto* variable = const_cast<const void*>(symbol);
  Allocation& made = new_allocation(variable, size, Space::variable, name, where);
  made.read_only = is_constant;
  made.scalar = shape.is_scalar ? shape.element : 0;
  mark_initialised(made, variable, size);
  return true;
}

// In pages of its own, so that they can be protected from the host while a kernel uses them.
void* new_managed(const void* initial, std::size_t size, const char* name, Position where) {
  std::byte* begin = take_pages(size, false);
  std::memcpy(begin, initial, size);
  Allocation& made = new_allocation(begin, size, Space::managed, name, where);
  made.is_static = true;
  mark_initialised(made, begin, size);
  return begin;
}

cudaError_t copy_to_symbol(const void* symbol, std::size_t size, const void* from, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                           Position where) {
  const Call call(stream ? "cudaMemcpyToSymbolAsync" : "cudaMemcpyToSymbol", where);
  if (sticky_error()) return sticky_error();
  if (!is_variable(symbol, size, 0)) return no_symbol(0);
  const void* begin = static_cast<const std::byte*>(symbol) + offset;
  return copy_rows(one_row(begin, bytes), one_row(from, bytes), kind, stream, 1);
}

cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                             Position where) {
  const Call call(stream ? "cudaMemcpyFromSymbolAsync" : "cudaMemcpyFromSymbol", where);
  if (sticky_error()) return sticky_error();
  if (!is_variable(symbol, size, 1)) return no_symbol(1);
  const void* begin = static_cast<const std::byte*>(symbol) + offset;
  return copy_rows(one_row(to, bytes), one_row(begin, bytes), kind, stream, 1);
}

cudaError_t address_of_symbol(void** address, const void* symbol, std::size_t size, Position where) {
  const Call call("cudaGetSymbolAddress", where);
  if (sticky_error()) return sticky_error();
  if (!is_variable(symbol, size, 1)) return no_symbol(1);
  return *address = const_cast<void*>(symbol), cudaSuccess;
}

}  // namespace emulator
