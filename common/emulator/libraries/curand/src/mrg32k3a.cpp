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

void move(unsigned (&state)[3], Matrix step, unsigned long long modulus, unsigned long long count,
          int doublings) {
  for (; doublings > 0; doublings--) step = product(step, step, modulus);
  for (; count > 0; count /= 2, step = product(step, step, modulus)) {
    if (count % 2 == 0) continue;
    const Row old = {state[0], state[1], state[2]};
    for (int i = 0; i < 3; i++) {
      unsigned long long sum = 0;
      for (int k = 0; k < 3; k++) sum = (sum + step[i][k] * old[k] % modulus) % modulus;
      state[i] = unsigned(sum);
    }
  }
}

}  // namespace

void jump(unsigned (&first)[3], unsigned (&second)[3], unsigned long long count, int doublings) {
  constexpr auto m1 = Mrg32k3a::kFirst, m2 = Mrg32k3a::kSecond;
  move(first, {{{0, 1, 0}, {0, 0, 1}, {m1 - 810728, 1403580, 0}}}, m1, count, doublings);
  move(second, {{{0, 1, 0}, {0, 0, 1}, {m2 - 1370589, 0, 527612}}}, m2, count, doublings);
}

}  // namespace emulator::curand
