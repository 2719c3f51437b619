// The Fourier transform of one line of complex numbers, of any length.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

namespace emulator::cufft {

using Complex = std::complex<double>;

class Fourier {
 public:
  // The sign of the exponent is -1 forward and 1 inverse; nothing is divided by the size.
  Fourier(std::size_t size, int sign);

  // `from` has a step between its elements; `to` has none, and is other memory.
  void transform(const Complex* from, std::ptrdiff_t step, Complex* to) const;

 private:
  void divide(std::size_t size, const Complex* from, std::ptrdiff_t step, Complex* to,
              std::size_t factor) const;
  void convolve(const Complex* from, std::ptrdiff_t step, Complex* to) const;

  std::size_t size_;
  std::vector<Complex> roots_;        // of unity: e^(sign * 2 pi i k / size)
  std::vector<std::size_t> factors_;  // primes; empty for a size with a large one
  // Of such a size, by Bluestein's convolution with a chirp:
  std::vector<Complex> chirp_, transformed_chirp_;
  std::unique_ptr<Fourier> forward_, inverse_;
};

}  // namespace emulator::cufft
