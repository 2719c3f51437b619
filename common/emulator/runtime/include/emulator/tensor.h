// Registers the tensors whose memory the host passes to kernels. The rewriter writes
//
//   x.data_ptr<T>()     as  ::emulator::tensor("x", x).data_ptr<T>()
//   at::empty({B, S})   as  ::emulator::fresh(at::empty({B, S}))
//
// wherever these names occur. Objects other than tensors pass through. Includes no header of torch, for
// speed, and none of CUDA, because a host file may have its own float4. A tensor is recognised by its
// members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/source_location.h"

#pragma GCC visibility push(hidden)
namespace emulator {

// The memory behind a tensor, of which other tensors may be views.
struct Storage {
  const void* identity;
  void* begin;
  std::size_t size;             // bytes
  std::function<bool()> alive;  // whether anything but `held` keeps it
  std::shared_ptr<void> held;   // keeps it; null where more than one tensor does anyway
};

// A tensor as the host named it.
struct Shape {
  std::string name, type;  // "old_cell.contiguous()", "float"
  const void* begin;       // the first element
  std::size_t element;     // bytes
  std::vector<std::int64_t> sizes, strides;
  bool read_only;
};

void add_tensor(Storage storage, Shape shape);
void fill_uninitialised(Storage storage, std::source_location where);

template <typename T>
concept ATensor = requires(const T& t) {
  t.unsafeGetTensorImpl();
  t.storage().getWeakStorageImpl();
  t.dtype().name();
};

// Memory that kernels can reach: not that of sparse tensors, which have several, or of tensors without data.
template <ATensor T>
bool has_memory(const T& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.has_storage() && tensor.storage().nbytes() > 0 &&
         tensor.storage().data();
}

// Storage that only one tensor uses may belong to a temporary, and be freed before the launch. It is held
// until then, so that no other object takes its place unnoticed.
template <ATensor T>
Storage storage_of(const T& tensor) {
  using Owner = std::decay_t<decltype(tensor.storage())>;
  const void* begin = tensor.storage().data();
  auto weak = std::make_shared<decltype(tensor.storage().getWeakStorageImpl())>(
      tensor.storage().getWeakStorageImpl());
  std::shared_ptr<Owner> held;
  if (tensor.storage().use_count() == 1) held = std::make_shared<Owner>(tensor.storage());
  auto alive = [weak, own = std::weak_ptr(held), begin] {
    return weak->use_count() > std::size_t(!own.expired()) && weak->_unsafe_get_target()->data() == begin;
  };
  return {weak->_unsafe_get_target(), const_cast<void*>(begin), tensor.storage().nbytes(), alive, held};
}

template <ATensor T>
void remember(const char* name, const T& tensor, bool read_only) {
  if (!has_memory(tensor)) return;
  const auto element = std::size_t(tensor.dtype().itemsize());
  const auto* storage = static_cast<const std::byte*>(tensor.storage().data());
  add_tensor(storage_of(tensor), {name,
                                  std::string(tensor.dtype().name()),
                                  storage + tensor.storage_offset() * std::int64_t(element),
                                  element,
                                  {tensor.sizes().begin(), tensor.sizes().end()},
                                  {tensor.strides().begin(), tensor.strides().end()},
                                  read_only});
}

// Returns `expression` unchanged: a tensor, a pointer to one, or anything else.
template <typename T>
T&& tensor(const char* name, T&& expression, bool read_only = false) {
  if constexpr (ATensor<std::decay_t<T>>) {
    remember(name, expression, read_only);
  } else if constexpr (requires { requires ATensor<std::decay_t<decltype(*expression)>>; }) {
    if (expression) remember(name, *expression, read_only);
  }
  return std::forward<T>(expression);
}

// A tensor that is still uninitialised.
template <typename T>
T fresh(T made, std::source_location where = std::source_location::current()) {
  if constexpr (ATensor<T>)
    if (has_memory(made)) fill_uninitialised(storage_of(made), where);
  return made;
}

}  // namespace emulator
#pragma GCC visibility pop
