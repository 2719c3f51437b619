// Adds up its arguments, and prints the sum.
#include <ATen/core/Tensor.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  at::Tensor numbers = at::zeros({count - 1}, at::kDouble);
  for (int k = 1; k < count; k++) numbers.mutable_data_ptr<double>()[k - 1] = std::atof(words[k]);
  std::printf("%.17g\n", numbers.sum().item<double>());
}
