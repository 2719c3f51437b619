// Reports an accessor's index that is out of range for its dimension.
#include <algorithm>
#include <string>

#include "../memory/access.h"
#include "../memory/allocation.h"
#include "../report/report.h"
#include "../scheduler/scheduler.h"
#include "../state/launch_state.h"

namespace emulator {
namespace {

// The tensor whose last dimensions have these sizes: an argument
// of the launch, or else the tensor that the host named last.
const View* view_with(const Allocation& allocation, const std::int64_t* sizes, std::size_t dimensions) {
  auto ends_so = [&](const View& view) {
    return view.sizes.size() >= dimensions &&
           std::equal(sizes, sizes + dimensions, view.sizes.end() - dimensions);
  };
  auto used = std::find_if(allocation.used.begin(), allocation.used.end(), ends_so);
  if (used != allocation.used.end()) return &*used;
  auto named = std::find_if(allocation.views.rbegin(), allocation.views.rend(), ends_so);
  return named == allocation.views.rend() ? nullptr : &*named;
}

}  // namespace

__attribute__((visibility("hidden"))) void refuse_index(const void* data, std::int64_t index,
                                                        const std::int64_t* sizes, std::size_t dimensions,
                                                        const void* pc) {
  if (!running.in_kernel || !is_on(Check::memory)) return;
  running.in_kernel = false;
  const Allocation* allocation = find_allocation(data);
  const View* view = allocation ? view_with(*allocation, sizes, dimensions) : nullptr;
  const Cause cause{Check::memory, "outside of a dimension", static_cast<const char*>(pc) - 1, allocation};
  if (is_new(cause)) {
    std::string which = " is out of range for a dimension";
    if (view)
      which = " is out of range for dimension " + std::to_string(view->sizes.size() - dimensions) + " of " +
              view->name;
    add(cause,
        {false, "index " + std::to_string(index) + which + ", which has size " + std::to_string(sizes[0]), "",
         view ? describe(*allocation) : ""});
  }
  end_thread();
}

}  // namespace emulator
