// The safetensors container, read strictly and written canonically. Knows nothing of models.
//
//   offset 0   length N of the header, 8 bytes, little endian
//   offset 8   header: JSON object, name -> {"dtype", "shape", "data_offsets": [begin, end]}, and "__metadata__": string -> string
//   offset 8+N tensor data; data_offsets count from here. The tensors cover it without gaps or overlaps.
#ifndef OCTAVO_ENGINE_SAFETENSORS_H_
#define OCTAVO_ENGINE_SAFETENSORS_H_

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct Tensor {
  std::string name;
  std::string type;                 // as in the file: F32, F16, BF16, F64, or another one the format has
  std::vector<size_t> shape;        // empty for a scalar
  std::span<const std::byte> data;  // any alignment; belongs to whoever holds the file's bytes

  // "[3, 4]", cut after 8 sizes
  std::string ShapeText() const;
  size_t num_elements() const;
};

struct Safetensors {
  std::vector<Tensor> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// Reads a container from `file`, which must outlive the result. Every length, shape, offset and product is checked before it is used.
// Throws Error that names `where`, the tensor, what was expected and what was found. Memory: that of the header.
Safetensors ParseSafetensors(std::span<const std::byte> file, std::string_view where);

// The elements as float: F32 as they are, F16 and BF16 exactly, F64 rounded to nearest.
// Throws Error for any other type and for values that are not finite (as float).
std::vector<float> ToFloats(const Tensor& tensor, std::string_view where);

// The bytes of a container with these tensors in this order. Shapes and data must agree.
std::vector<std::byte> WriteSafetensors(std::span<const Tensor> tensors,
                                        const std::map<std::string, std::string>& metadata);

// The whole of a regular file. Throws Error that names it.
std::vector<std::byte> ReadFileBytes(const std::filesystem::path& path);

// The same for a safetensors file, whose first bytes are looked at before memory is taken for the rest.
std::vector<std::byte> ReadSafetensorsBytes(const std::filesystem::path& path);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_SAFETENSORS_H_
