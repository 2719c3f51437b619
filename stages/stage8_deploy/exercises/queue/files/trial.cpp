// What `make check` compiles. Do not change this file; edit queue.h.
//
// Arguments: the three limits, then events: push REQUEST TIME, pop TIME, or close. A line for each event:
// what it returns.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "queue.h"

int main(int, char** words) {
  auto number = [&] { return std::atoll(*++words); };
  const size_t waiting = number(), batch = number();
  Queue queue({waiting, batch, number()});
  while (*++words) {
    const std::string event = *words;
    if (event == "push") {
      const int request = int(number());
      std::printf("%s\n", queue.push(request, number()) ? "accepted" : "refused");
    } else if (event == "pop") {
      for (const int request : queue.pop(number())) std::printf("%d ", request);
      std::printf("\n");
    } else {
      queue.close();
      std::printf("\n");
    }
    std::fflush(stdout);
  }
}
