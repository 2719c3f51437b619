// Reads and writes of surfaces, whose x is a number of bytes.
#include <algorithm>
#include <cstring>

#include "../accesses/accesses.h"
#include "../state/launch_state.h"
#include "image_objects.h"

namespace emulator {
namespace {

struct SurfaceAccess {
  const ImageObject& surface;
  const ImageFunction& function;
  std::size_t bytes;
  SurfacePoint at;
  bool is_write;
  const void* pc;

  std::string call() const { return std::string(function.name) + (is_write ? " writes " : " reads "); }
};

void check_element(const SurfaceAccess& access) {
  const Image& image = access.surface.image;
  if (access.at.x % int(access.bytes))
    report_use(access.surface, "misaligned",
               access.call() + std::to_string(access.bytes) + " bytes of " + access.surface.name +
                   " at a misaligned x",
               "x is " + std::to_string(access.at.x) +
                   ", which is a number of bytes: multiply the column by " + std::to_string(access.bytes),
               false, access.pc);
  if (access.bytes != image.texel_bytes())
    report_use(access.surface, "other size",
               access.call() + std::to_string(access.bytes) + " bytes of " + access.surface.name +
                   ", whose elements are " + text_of(image.type),
               "", true, access.pc);
}

[[noreturn]] void trap(const SurfaceAccess& access) {
  const SurfacePoint& at = access.at;
  const Image& image = access.surface.image;
  std::string place = "x is " + std::to_string(at.x);
  if (image.dimensions > 1) place += ", y " + std::to_string(at.y);
  if (image.dimensions > 2) place += ", z " + std::to_string(at.z);
  if (image.is_layered) place += ", the layer " + std::to_string(at.z);
  report_use(access.surface, "outside of a surface", access.call() + "outside of " + access.surface.name,
             place + "; " + access.surface.name + " has " + size_text(image) + ", rows of " +
                 std::to_string(image.width * image.texel_bytes()) + " bytes, and x is a number of bytes",
             false, access.pc);
  __builtin_unreachable();
}

// The address of the element; null for one outside that the mode ignores.
std::byte* find_element(const SurfaceAccess& access, cudaSurfaceBoundaryMode mode) {
  const Image& image = access.surface.image;
  const long long row = (long long)(image.width * image.texel_bytes()) - (long long)access.bytes;
  const long long last[] = {row, (long long)image.height - 1, (long long)image.depth - 1};
  long long at[] = {access.at.x, access.at.y, access.at.z};
  for (int i = 0; i < 3; i++) {
    if (at[i] >= 0 && at[i] <= last[i]) continue;
    if (mode == cudaBoundaryModeTrap) trap(access);
    if (mode == cudaBoundaryModeZero) return nullptr;
    at[i] = std::clamp(at[i], 0LL, last[i]);
  }
  return const_cast<std::byte*>(image.texel(0, std::size_t(at[1]), std::size_t(at[2]))) + at[0];
}

std::byte* element_at(unsigned long long handle, const ImageFunction& function, std::size_t bytes,
                      const SurfacePoint& at, cudaSurfaceBoundaryMode mode, bool is_write, const void* pc) {
  if (!running.thread) abandon("calls %s outside of a kernel", function.name);
  const ImageObject& surface = image_object(handle, true, function, pc);
  const SurfaceAccess access{surface, function, bytes, at, is_write, pc};
  check_element(access);
  std::byte* element = find_element(access, mode);
  if (!element) return nullptr;
  if (is_write)
    on_access(element, bytes, true, AccessKind::plain, pc);
  else
    check_texel_read(surface, element, bytes, function, pc);
  return element;
}

}  // namespace

__attribute__((noinline)) void read_surface(cudaSurfaceObject_t surface, const ImageFunction& function,
                                            void* texel, std::size_t bytes, const SurfacePoint& at,
                                            cudaSurfaceBoundaryMode mode) {
  const void* pc = static_cast<const char*>(__builtin_return_address(0)) - 1;
  const InRuntime inside;
  if (const std::byte* element = element_at(surface, function, bytes, at, mode, false, pc))
    std::memcpy(texel, element, bytes);
  else
    std::memset(texel, 0, bytes);
}

__attribute__((noinline)) void write_surface(cudaSurfaceObject_t surface, const ImageFunction& function,
                                             const void* texel, std::size_t bytes, const SurfacePoint& at,
                                             cudaSurfaceBoundaryMode mode) {
  const void* pc = static_cast<const char*>(__builtin_return_address(0)) - 1;
  const InRuntime inside;
  if (std::byte* element = element_at(surface, function, bytes, at, mode, true, pc))
    std::memcpy(element, texel, bytes);
}

}  // namespace emulator
