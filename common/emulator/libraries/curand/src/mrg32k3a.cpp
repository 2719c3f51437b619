// Jumps of MRG32k3a: each recurrence multiplies its state by a matrix, modulo a prime.
#include <array>

#include "emulator/random.h"

namespace emulator::curand {
namespace {

using Row = std::array<unsigned long long, 3>;
using Matrix = std::array<Row, 3>;

Matrix product(const Matrix& a, const Matrix& b, unsigned long long modulus) {
  Matrix result{};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) result[i][j] = (result[i][j] + a[i][k] * b[k][j] % modulus) % modulus;
  return result;
}

// The powers of a matrix: 2^i steps, for each i.
using Powers = std::array<Matrix, 127 + 64>;

Powers powers_of(const Matrix& step, unsigned long long modulus) {
  Powers powers{step};
  for (std::size_t i = 1; i < powers.size(); i++) powers[i] = product(powers[i - 1], powers[i - 1], modulus);
  return powers;
}

void move(unsigned (&state)[3], const Powers& powers, unsigned long long modulus, unsigned long long count,
          int doublings) {
  for (; count > 0; count /= 2, doublings++) {
    if (count % 2 == 0) continue;
    const Row old = {state[0], state[1], state[2]};
    for (int i = 0; i < 3; i++) {
      unsigned long long sum = 0;
      for (int k = 0; k < 3; k++) sum = (sum + powers[doublings][i][k] * old[k] % modulus) % modulus;
      state[i] = unsigned(sum);
    }
  }
}

}  // namespace

void jump(unsigned (&first)[3], unsigned (&second)[3], unsigned long long count, int doublings) {
  constexpr auto m1 = Mrg32k3a::kFirst, m2 = Mrg32k3a::kSecond;
  static const Powers of_first = powers_of({{{0, 1, 0}, {0, 0, 1}, {m1 - 810728, 1403580, 0}}}, m1);
  static const Powers of_second = powers_of({{{0, 1, 0}, {0, 0, 1}, {m2 - 1370589, 0, 527612}}}, m2);
  move(first, of_first, m1, count, doublings);
  move(second, of_second, m2, count, doublings);
}

}  // namespace emulator::curand
