#include <cstring>
#include <vector>
int main() {
  std::vector<char*> all;
  for (;;) {
    all.push_back(new char[1 << 28]);
    memset(all.back(), 1, 4096);
  }
}
