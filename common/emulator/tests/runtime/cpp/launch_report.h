// The emulator's report on a launch.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "initialisation.h"

// Device memory with a name for reports; it lives as long as the tests run.
template <typename T>
T* device(const char* name, const std::vector<T>& values) {
  auto* memory = new std::vector<T>(values);
  emulator::new_allocation(memory->data(), memory->size() * sizeof(T), emulator::Space::device, name);
  return memory->data();
}
template <typename T>
T* zeroes(const char* name, std::size_t size) {
  return device(name, std::vector<T>(size));
}
// It is uninitialised.
template <typename T>
T* fresh(const char* name, std::size_t size) {
  T* memory = zeroes<T>(name, size);
  emulator::mark_uninitialised(*emulator::find_allocation(memory), memory, size * sizeof(T));
  return memory;
}

template <typename T>
std::vector<T> counting_up(int size) {
  std::vector<T> values;
  for (int i = 0; i < size; i++) values.push_back(T(i + 1));
  return values;
}

// Empty if there are no findings.
template <typename Launch>
std::string report_of(Launch launch) {
  try {
    launch();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// In the order of the thread numbers, and in some other orders.
template <typename Launch>
void expect_silence(Launch launch) {
  for (const char* seed : {"", "1", "2", "3"}) {
    setenv("EMULATOR_SEED", seed, 1);
    EXPECT_EQ(report_of(launch), "") << "seed " << seed;
  }
  unsetenv("EMULATOR_SEED");
}

template <typename Launch>
void expect_report(Launch launch, const std::vector<std::string>& parts) {
  const std::string report = report_of(launch);
  for (const std::string& part : parts)
    EXPECT_NE(report.find(part), std::string::npos) << report << "lacks: " << part;
}
