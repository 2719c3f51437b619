// `lltm_serve run`: predictions for a file of sequences.
#pragma once

#include <filesystem>

#include "package.h"

// Input: JSON lines, each {"steps": [[...], ...]}, or an array (N,T,I) of float32 in a .npy file. Output: a
// line of JSON for each sequence. Throws Failure that names the line; the output is then incomplete.
void run_file(Package& package, const std::filesystem::path& input, const std::filesystem::path& output);
