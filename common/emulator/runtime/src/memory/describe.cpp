// Describes memory in messages: the array, the element, and the number of elements.
#include <algorithm>

#include "../report/report.h"
#include "allocation.h"
#include "bindings.h"

namespace emulator {
namespace {

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::string text = "(";
  for (std::size_t i = 0; i < sizes.size(); i++) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

// Dimensions from the widest stride to the narrowest.
std::vector<std::size_t> by_stride(const View& view) {
  std::vector<std::size_t> order(view.sizes.size());
  for (std::size_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return view.strides[a] > view.strides[b]; });
  return order;
}

// Bytes of an element, as the kernel sees them; 0 if unknown.
std::size_t element_size(const Allocation& allocation, const View* view) {
  if (view) return view->element;
  for (const BoundArgument& one : bound_arguments())
    if (one.allocation == &allocation && one.argument.element) return one.argument.element;
  return 0;
}

const View* shown_view(const Allocation& allocation) {
  if (!allocation.used.empty()) return &allocation.used.front();
  return allocation.views.empty() ? nullptr : &allocation.views.back();
}

}  // namespace

bool index_of(const View& view, std::int64_t offset, std::vector<std::int64_t>& index) {
  index.assign(view.sizes.size(), 0);
  const auto order = by_stride(view);
  for (std::size_t k = 0; k < order.size(); k++) {
    const std::size_t i = order[k];
    if (view.strides[i] <= 0) continue;
    index[i] = offset / view.strides[i];
    if (offset % view.strides[i] < 0) index[i]--;
    if (k > 0 && index[i] >= view.sizes[i]) return false;
    offset -= index[i] * view.strides[i];
  }
  return offset == 0;
}

std::string name_of(const Allocation& allocation) {
  if (!allocation.used.empty()) return allocation.used.front().name;
  for (const BoundArgument& one : bound_arguments())
    if (one.allocation == &allocation && !one.argument.name.empty()) return one.argument.name;
  return allocation.name.empty() ? "unnamed memory" : allocation.name;
}

std::string describe(const Allocation& allocation) {
  const View* view = shown_view(allocation);
  std::string text = name_of(allocation);
  if (allocation.space == Space::tensor && view) {
    text += ", a tensor of shape " + shape_text(view->sizes);
    if (!view->type.empty()) text += ", " + view->type;
    return text;
  }
  const std::size_t element = element_size(allocation, view);
  const std::string each = element > 8 ? ", " + std::to_string(element) + " each" : "";
  const std::string size = std::to_string(allocation.size) + " bytes" + each;
  const std::size_t count = element ? allocation.size / element : 0;
  text += element
              ? ", which has " + std::to_string(count) + (count == 1 ? " element (" : " elements (") + size
              : " (" + size;
  if (allocation.where.line()) text += ", allocated in " + line_at(allocation.where);
  if (!allocation.name.empty() && allocation.name != name_of(allocation))
    text += ", on the host: " + allocation.name;
  return text + ")";
}

std::string element_of(const Allocation& allocation, const void* address, std::size_t size) {
  const View* view = shown_view(allocation);
  const std::byte* begin = view ? view->begin : allocation.begin;
  std::size_t element = element_size(allocation, view);
  if (!element) element = size;
  std::ptrdiff_t offset = static_cast<const std::byte*>(address) - begin;
  offset = (offset - (offset < 0 ? std::ptrdiff_t(element) - 1 : 0)) / std::ptrdiff_t(element);
  std::vector<std::int64_t> index;
  if (!view || view->sizes.size() < 2 || !index_of(*view, offset, index))
    return "element " + std::to_string(offset);
  std::string text = "element [";
  for (std::size_t i = 0; i < index.size(); i++) text += (i ? ", " : "") + std::to_string(index[i]);
  return text + "]";
}

}  // namespace emulator
