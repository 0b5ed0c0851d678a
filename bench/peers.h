// Other libraries' matrix products, to be timed beside octavo's: those that CMake found.
#ifndef OCTAVO_BENCH_PEERS_H_
#define OCTAVO_BENCH_PEERS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace octavo::bench {

// out[rows, outputs] = x[rows, inputs] · weight[inputs, outputs], row-major, on one thread. Neither bias nor residual, which octavo's
// kernels add: that little is in the peer's favour.
struct PeerProduct {
  size_t num_rows, num_inputs, num_outputs;
  const float *x, *weight;
  float* out;
};

struct Peer {
  std::string name;         // as in the names of benchmarks
  std::string description;  // with version; what it would take where it is missing
  // Returns what is timed. Weights are packed beforehand where the library can. Empty where the library is missing.
  std::function<std::function<void()>(const PeerProduct&)> make;
};

// All that are known, also the missing ones.
std::vector<Peer> Peers();

}  // namespace octavo::bench

#endif  // OCTAVO_BENCH_PEERS_H_
