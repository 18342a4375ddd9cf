// The one exception family of the runtime. A message is a full sentence: what was expected, what came, what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace compass_edge {

// Each kind maps to one exit code of the command line and to one Python exception of compass_edge.errors.
enum class Fault { task = 1, usage = 2, environment = 3, integrity = 4 };

class Error : public std::runtime_error {
  public:
    Error(Fault fault, const std::string& sentence) : std::runtime_error(sentence), fault_(fault) {}
    Fault fault() const { return fault_; }

  private:
    Fault fault_;
};

}  // namespace compass_edge
