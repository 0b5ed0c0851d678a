// OpenBLAS and oneDNN, each where OCTAVO_BENCH_OPENBLAS or OCTAVO_BENCH_ONEDNN says that it was found; see peers.h.
#include "bench/peers.h"

#ifdef OCTAVO_BENCH_OPENBLAS
#include <cblas.h>
#endif
#ifdef OCTAVO_BENCH_ONEDNN
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

#include <fmt/format.h>

#include <memory>
#include <unordered_map>

namespace octavo::bench {
namespace {

#ifdef OCTAVO_BENCH_OPENBLAS
Peer OpenBlas() {
  openblas_set_num_threads(1);
  return {"openblas", openblas_get_config(), [](const PeerProduct& p) -> std::function<void()> {
            return [p] {
              const auto rows = static_cast<blasint>(p.num_rows), inputs = static_cast<blasint>(p.num_inputs),
                         outputs = static_cast<blasint>(p.num_outputs);
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, outputs, inputs, 1, p.x, inputs, p.weight,
                          outputs, 0, p.out, outputs);
            };
          }};
}
#else
Peer OpenBlas() { return {"openblas", "not built: CMake found no OpenBLAS (libopenblas-dev)", nullptr}; }
#endif

#ifdef OCTAVO_BENCH_ONEDNN
std::function<void()> MakeOneDnn(const PeerProduct& p) {
  using dnnl::memory;
  const auto rows = static_cast<memory::dim>(p.num_rows), inputs = static_cast<memory::dim>(p.num_inputs),
             outputs = static_cast<memory::dim>(p.num_outputs);
  const memory::desc x_desc({rows, inputs}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc out_desc({rows, outputs}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc plain_desc({inputs, outputs}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc packed_desc({inputs, outputs}, memory::data_type::f32, memory::format_tag::any);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc primitive_desc(engine, x_desc, packed_desc, out_desc);
#else
  const dnnl::matmul::primitive_desc primitive_desc({x_desc, packed_desc, out_desc}, engine);
#endif
  // The library takes inputs by pointers to what is not const.
  memory x(x_desc, engine, const_cast<float*>(p.x)), out(out_desc, engine, p.out);
  memory plain(plain_desc, engine, const_cast<float*>(p.weight)), packed(primitive_desc.weights_desc(), engine);
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
  const dnnl::matmul matmul(primitive_desc);
  const std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, out}};
  return [=]() mutable {
    matmul.execute(stream, arguments);
    stream.wait();
  };
}

Peer OneDnn() {
  omp_set_num_threads(1);
  const dnnl_version_t* version = dnnl_version();
  return {"onednn", fmt::format("{}.{}.{}", version->major, version->minor, version->patch), MakeOneDnn};
}
#else
Peer OneDnn() { return {"onednn", "not built: CMake found no oneDNN (libdnnl-dev) or no OpenMP", nullptr}; }
#endif

}  // namespace

std::vector<Peer> Peers() { return {OpenBlas(), OneDnn()}; }

}  // namespace octavo::bench
