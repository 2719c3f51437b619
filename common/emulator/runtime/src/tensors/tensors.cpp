// Tensors that the host passes to kernels: an allocation for each storage, a view for each tensor.
#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "../memory/access.h"
#include "../memory/allocation.h"
#include "../races/initialisation.h"
#include "../state/events.h"
#include "../state/launch_state.h"
#include "emulator/tensor.h"

namespace emulator {
namespace {

constexpr std::size_t kMostViews = 64;        // of one storage
constexpr std::size_t kMostHeld = 256 << 20;  // bytes, for hosts that never launch

// Storage that is held until the next launch, and storage to release. Releasing a tensor can run arbitrary
// code, and even wait for Python, so that happens outside the lock.
struct Held {
  std::shared_ptr<void> storage;
  std::size_t size;
};
std::deque<Held>& held() {
  static auto& all = *new std::deque<Held>;
  return all;
}
std::deque<Held> dropped;

void hold(const Storage& storage) {
  if (storage.held) held().push_back({storage.held, storage.size});
  std::size_t size = 0;
  for (const Held& one : held()) size += one.size;
  for (; size > kMostHeld; held().pop_front()) {
    size -= held().front().size;
    dropped.push_back(std::move(held().front()));
  }
}

Allocation& allocation_of(const Storage& storage, Position where) {
  Allocation* known = find_allocation(storage.begin);
  const bool is_known = known && known->storage == storage.identity && known->begin == storage.begin &&
                        known->size == storage.size && known->alive();
  Allocation& allocation =
      is_known ? *known : new_allocation(storage.begin, storage.size, Space::tensor, "", where);
  allocation.storage = storage.identity;
  allocation.device = tensor_device();
  if (!is_known || storage.held) {
    allocation.alive = storage.alive;
    hold(storage);
  }
  return allocation;
}

bool is_same_view(const View& a, const View& b) {
  return a.begin == b.begin && a.element == b.element && a.sizes == b.sizes && a.strides == b.strides &&
         a.read_only == b.read_only;
}

}  // namespace

void add_tensor(Storage storage, Shape shape) {
  drop_tensors();
  const std::lock_guard lock(emulator_one_launch);
  Allocation& allocation = allocation_of(storage, {});
  View view{shape.name,     std::move(shape.type),  static_cast<const std::byte*>(shape.begin),
            shape.element,  std::move(shape.sizes), std::move(shape.strides),
            shape.read_only};
  auto& views = allocation.views;
  std::erase_if(views, [&](const View& other) { return is_same_view(view, other); });
  if (views.size() == kMostViews) views.erase(views.begin());
  views.push_back(std::move(view));
  allocation.name = std::move(shape.name);
}

void fill_uninitialised(Storage storage, Position where) {
  drop_tensors();
  const std::lock_guard lock(emulator_one_launch);
  auto* begin = static_cast<std::byte*>(storage.begin);
  for (std::size_t at = 0; at < storage.size; at += sizeof(kUninitialised))
    std::memcpy(begin + at, &kUninitialised, std::min(sizeof(kUninitialised), storage.size - at));
  mark_uninitialised(allocation_of(storage, where), begin, storage.size);
}

void release_tensors() {
  for (Held& one : held()) dropped.push_back(std::move(one));
  held().clear();
  for (Allocation* allocation : all_allocations()) {
    for (View& view : allocation->views) view.is_recent = false;
    if (allocation->alive && !allocation->alive()) forget(*allocation);
  }
}

void drop_tensors() {
  std::deque<Held> all;
  const std::lock_guard lock(emulator_one_launch);
  std::swap(all, dropped);
}

}  // namespace emulator
