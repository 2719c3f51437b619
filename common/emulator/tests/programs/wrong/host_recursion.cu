int deep(int n) {
  volatile char here[1000];
  here[n % 1000] = 1;
  return deep(n + 1) + here[0];
}
int main() { return deep(0); }
