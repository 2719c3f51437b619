// Arrays of float32 in NumPy's file format.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

// Throws Failure unless the file holds an array of little-endian float32 in C order.
at::Tensor read_numpy_file(const std::filesystem::path& path);
