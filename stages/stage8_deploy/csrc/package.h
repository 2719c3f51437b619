// A package of AOTInductor, with the library of operators beside it.
#pragma once

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sequence.h"

class Package : public Sizes {
 public:
  // Loads the package and runs it once. Throws Failure with one line if the package is not for this program.
  explicit Package(const std::filesystem::path& path);

  State first_state() const;
  // One call of the model for all sequences, at most max_batch. Not for several threads at a time.
  std::vector<Prediction> predict(const std::vector<Sequence>& batch);

 private:
  std::filesystem::path path_;
  std::unordered_map<std::string, std::string> metadata_;
  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader_;
  at::Device device_ = at::kCPU;  // the model's; sequences and predictions are CPU tensors

  void check_file(const std::filesystem::path& name) const;  // in the package's folder: its checksum
  void read_metadata();
  void choose_device(const std::string& kind);
  int64_t number(const char* name) const;
  void load_operators();
  void load_model();
};
