#include <stdexcept>
#include <vector>
int main() {
  std::vector<int> few(3);
  return few.at(3);
}
