// The checks of each load and store, for which every other check is asked.
#pragma once

#include "../memory/access.h"

EMULATOR_BEGIN
namespace emulator {

// Called by the hooks on the stack of the running thread, before the access happens. Not called for local
// variables. Does not return if the thread must not continue. A copy of a structure may begin anywhere.
void on_access(void* address, std::size_t size, bool is_write, AccessKind kind, const void* pc,
               bool is_copy = false);

// An index outside of an array whose size the compiler knows. Does not return if the array is a local one.
struct ArrayIndex {
  const char *file, *type;  // "float [8]", in quotation marks
  unsigned line, column;    // of the access; the column is that of the rewritten text
  long long index;
};
void on_array_index(const ArrayIndex& found, const void* pc);

// An asynchronous copy arrives: from now on its thread has written this memory.
void record_arrival(void* to, std::size_t bytes, const void* pc);

// Checks an access to global memory before it happens, and sets `allocation`. Does not return
// if the thread must not continue.
void check_memory(Access& access, bool is_copy);
// Whether every access to what the launch was given of an allocation passes, if one has.
bool may_access_all(const Allocation& allocation, bool is_write);
void check_alignment(const Access& access, const SharedVariable* variable = nullptr);
// Whether it would be an access to one number or pointer in a `__device__` or `__constant__` variable.
bool is_scalar_in_variable(const void* address, std::size_t size);

}  // namespace emulator
EMULATOR_END
