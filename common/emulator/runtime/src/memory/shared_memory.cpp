#include "shared_memory.h"

namespace emulator {

const SharedVariable* variable_at(const Block& block, const std::byte* arena, const std::byte* address) {
  const auto offset = std::size_t(address - arena);
  const bool is_dynamic = arena == block.arena.dynamic;
  for (const SharedVariable& variable : running.launch->shared.variables)
    if (variable.is_dynamic == is_dynamic && offset - variable.offset < variable.size) return &variable;
  return nullptr;
}

std::string name_of(const SharedVariable& variable) { return *variable.name ? variable.name : "a variable"; }

std::string element_of(const SharedVariable& variable, std::ptrdiff_t offset) {
  const ArrayShape& shape = variable.shape;
  auto element = std::ptrdiff_t(shape.element);
  std::string index;
  offset = offset / element - (offset % element < 0);
  for (unsigned i = shape.dimensions; i-- > 0;) {
    const auto size = std::ptrdiff_t(shape.sizes[i]);
    index = "[" + std::to_string(i == 0 ? offset : (offset % size + size) % size) + "]" + index;
    if (i > 0) offset = offset / size - (offset % size < 0);
  }
  return name_of(variable) + index;
}

std::string describe(const SharedVariable& variable) {
  if (variable.is_dynamic)
    return "the launch asks for " + std::to_string(variable.size) + " bytes of dynamic shared memory";
  std::string text = name_of(variable) + " is __shared__";
  for (unsigned i = 0; i < variable.shape.dimensions; i++)
    text += (i ? "[" : " and has [") + std::to_string(variable.shape.sizes[i]) + "]";
  if (variable.shape.dimensions) text += " elements";
  return text + " of " + std::to_string(variable.shape.element) + " bytes";
}

}  // namespace emulator
