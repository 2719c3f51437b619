#include <csignal>
int main() { raise(SIGKILL); }
