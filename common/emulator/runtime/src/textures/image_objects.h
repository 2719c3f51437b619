// Texture objects and surface objects, by their handles.
#pragma once

#include <string>

#include "emulator/textures.h"
#include "image.h"

EMULATOR_BEGIN
namespace emulator {

struct ImageObject {
  bool is_surface = false;
  std::string name;  // "tex"
  Image image;
  cudaResourceDesc resource{};
  cudaTextureDesc sampling{};  // of a texture
  bool is_destroyed = false;
  Position destroyed_where{};

  std::string kind() const { return is_surface ? "surface object" : "texture object"; }
};

// The object that a kernel uses at `pc`. Reports a handle that the function cannot use, and ends the thread.
const ImageObject& image_object(unsigned long long handle, bool is_surface, const ImageFunction& function,
                                const void* pc);
// A finding about a kernel's use of an object; the thread ends after an error.
void report_use(const ImageObject& object, const char* problem, std::string what, std::string detail,
                bool is_warning, const void* pc);
// Checks the access to a texel. A read of a texel that the same launch has written returns undefined data.
void check_texel_read(const ImageObject& object, const std::byte* texel, std::size_t bytes,
                      const ImageFunction& function, const void* pc);

}  // namespace emulator
EMULATOR_END
