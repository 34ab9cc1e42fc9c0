// The wall between C++ exceptions and Rust.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace stepledger {

// What the last failure on this thread was; sl_last_error() gives it to Rust.
inline thread_local std::string last_error;

// Runs `work`; returns 0, or 1 with the message in `last_error`.
template <class Work>
int guarded(Work work) {
  try {
    work();
    return 0;
  } catch (const c10::Error& error) {
    last_error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "an unknown C++ exception";
  }
  return 1;
}

}  // namespace stepledger
