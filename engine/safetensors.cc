// The safetensors container; see safetensors.h.
#include "engine/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <type_traits>

#include "engine/fail.h"
#include "engine/json.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, size_t>, 14> kTypeSizes = {{{"F64", 8},
                                                                             {"F32", 4},
                                                                             {"F16", 2},
                                                                             {"BF16", 2},
                                                                             {"I64", 8},
                                                                             {"U64", 8},
                                                                             {"I32", 4},
                                                                             {"U32", 4},
                                                                             {"I16", 2},
                                                                             {"U16", 2},
                                                                             {"I8", 1},
                                                                             {"U8", 1},
                                                                             {"BOOL", 1},
                                                                             {"F8_E4M3", 1}}};

std::optional<size_t> TypeSize(std::string_view type) {
  const auto found = std::find_if(kTypeSizes.begin(), kTypeSizes.end(), [&](const auto& e) { return e.first == type; });
  return found == kTypeSizes.end() ? std::nullopt : std::optional(found->second);
}

// A description takes some 100 bytes; a GPT of 10,000 layers has 120,000 tensors. The vocabulary stands in the header
// too.
constexpr size_t kMostTensors = size_t{1} << 17;
constexpr uint64_t kLargestHeader = uint64_t{1} << 24;

// A product of sizes, or nullopt when it does not fit.
std::optional<size_t> Multiply(size_t a, size_t b) {
  size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

// A list of sizes from the header; `what` is "tensor 'x': shape".
std::vector<size_t> ReadSizes(const Json& list, std::string_view what) {
  if (!list.is_array()) Fail("{} is not a list", what);
  std::vector<size_t> sizes;
  for (const Json& size : list) {
    if (!size.is_number_unsigned())
      Fail("{} holds {}; expected whole numbers from 0 to 2^64-1", what,
           size.type_name() == std::string("number") ? size.dump() : size.type_name());
    sizes.push_back(size.get<size_t>());
  }
  return sizes;
}

Tensor ReadTensor(const std::string& name, const Json& entry, std::span<const std::byte> data, std::string_view where) {
  const std::string what = fmt::format("{}: tensor {}", where, Quote(name));
  if (!entry.is_object()) Fail("{} is described by {}; expected an object", what, entry.type_name());
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) Fail("{} has no {}", what, key);
  }
  if (entry.size() != 3) Fail("{} has entries besides dtype, shape and data_offsets", what);
  const Json& type = entry["dtype"];
  const std::optional<size_t> element_bytes =
      type.is_string() ? TypeSize(type.get_ref<const std::string&>()) : std::nullopt;
  if (!element_bytes)
    Fail("{} has an unknown dtype {}", what,
         type.is_string() ? Quote(type.get_ref<const std::string&>()) : type.type_name());

  Tensor tensor{name, type.get<std::string>(), ReadSizes(entry["shape"], what + ": shape"), {}};
  std::optional<size_t> bytes = *element_bytes;
  for (const size_t size : tensor.shape) {
    bytes = Multiply(*bytes, size);
    if (!bytes) Fail("{} with shape {} would need more than 2^64 bytes", what, tensor.ShapeText());
  }
  const std::vector<size_t> offsets = ReadSizes(entry["data_offsets"], what + ": data_offsets");
  if (offsets.size() != 2) Fail("{} has {} data_offsets; expected [begin, end]", what, offsets.size());
  const size_t begin = offsets[0], end = offsets[1];
  if (begin > end || end > data.size()) {
    Fail("{} has data_offsets [{}, {}]; expected begin ≤ end ≤ {}, the bytes of data in the file", what, begin, end,
         data.size());
  }
  if (end - begin != *bytes) {
    Fail("{} is {} {}, which takes {} bytes; its data_offsets span {}", what, tensor.type, tensor.ShapeText(), *bytes,
         end - begin);
  }
  tensor.data = data.subspan(begin, end - begin);
  return tensor;
}

void CheckNames(const std::vector<Tensor>& tensors, std::string_view what) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const Tensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) Fail("{} has the key {} twice", what, Quote(*twice));
}

// Sorts by place and refuses gaps, overlaps and bytes that belong to no tensor.
void CheckCoverage(std::vector<Tensor>& tensors, std::span<const std::byte> data, std::string_view where) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  size_t covered = 0;
  for (const Tensor& tensor : tensors) {
    const size_t begin = static_cast<size_t>(tensor.data.data() - data.data());
    if (begin != covered) {
      Fail("{}: tensor {} begins at byte {} of the data; expected {}, where the one before it ends", where,
           Quote(tensor.name), begin, covered);
    }
    covered += tensor.data.size();
  }
  if (covered != data.size())
    Fail("{}: the tensors end at byte {} of the data; the file has {} bytes of it", where, covered, data.size());
}

void ReadMetadata(const Json& object, std::map<std::string, std::string>& metadata, std::string_view where) {
  if (!object.is_object()) Fail("{}: __metadata__ is {}; expected an object of strings", where, object.type_name());
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) Fail("{}: __metadata__ {} is {}; expected a string", where, Quote(key), value.type_name());
    metadata[key] = value.get<std::string>();
  }
}

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));  // any alignment
  return value;
}

float FromHalf(uint16_t half) {
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  if (exponent == 31)
    return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  return sign * (exponent ? std::ldexp(static_cast<float>(1024 + fraction), exponent - 25)
                          : std::ldexp(static_cast<float>(fraction), -24));
}

float FromBrain(uint16_t brain) { return std::bit_cast<float>(static_cast<uint32_t>(brain) << 16); }

template <typename Stored, typename Convert>
void ConvertAll(const Tensor& tensor, const Convert& convert, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = convert(Load<Stored>(tensor.data.data() + i * sizeof(Stored)));
}

// The header's length, from a file's first bytes (nine, or all there are) and its size.
uint64_t CheckStart(std::span<const std::byte> start, uint64_t file_bytes, std::string_view where) {
  if (file_bytes < 8) Fail("{} has {} bytes; a safetensors file has at least 8", where, file_bytes);
  const uint64_t header_bytes = Load<uint64_t>(start.data());
  if (header_bytes > file_bytes - 8) {
    Fail("{}: the header would take {} bytes; the file has {} behind the length", where, header_bytes, file_bytes - 8);
  }
  if (header_bytes > kLargestHeader)
    Fail("{}: the header takes {} bytes; at most {} are read, room for {} tensors", where, header_bytes, kLargestHeader,
         kMostTensors);
  if (header_bytes == 0 || start[8] != std::byte{'{'})
    Fail("{}: the header does not begin with '{{'; is this a safetensors file?", where);
  return header_bytes;
}

std::ifstream OpenFile(const std::filesystem::path& path, uint64_t& size) {
  std::error_code code;
  const std::string name = QuotePath(path.string());
  const auto status = std::filesystem::status(path, code);
  if (status.type() == std::filesystem::file_type::not_found) Fail("{}: there is no such file", name);
  if (!std::filesystem::status_known(status)) Fail("{} cannot be opened: {}", name, code.message());
  if (!std::filesystem::is_regular_file(status)) Fail("{} is not a regular file", name);
  size = std::filesystem::file_size(path, code);
  std::ifstream file(path, std::ios::binary);
  if (code || !file) Fail("{} cannot be opened: {}", name, std::strerror(errno));
  return file;
}

std::vector<std::byte> ReadBytes(std::ifstream& file, uint64_t size, const std::filesystem::path& path) {
  std::vector<std::byte> bytes(size);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    Fail("{}: the file became shorter while it was read", QuotePath(path.string()));
  return bytes;
}

}  // namespace

std::string Tensor::ShapeText() const {
  // A hostile header may give millions of sizes.
  constexpr size_t kMostShown = 8;
  const auto shown = std::span(shape).first(std::min(shape.size(), kMostShown));
  return fmt::format("[{}{}]", fmt::join(shown, ", "), shape.size() > kMostShown ? ", …" : "");
}

size_t Tensor::num_elements() const { return data.size() / TypeSize(type).value(); }

Safetensors ParseSafetensors(std::span<const std::byte> file, std::string_view where) {
  const uint64_t header_bytes = CheckStart(file, file.size(), where);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, header_bytes);
  const std::string what = fmt::format("{}: the header", where);
  const std::span<const std::byte> data = file.subspan(8 + header_bytes);

  Safetensors result;
  bool has_metadata = false;
  const auto take = [&](const std::string& name, const Json& entry) {
    if (name == "__metadata__") {
      if (std::exchange(has_metadata, true)) Fail("{} has the key {} twice", what, Quote(name));
      return ReadMetadata(entry, result.metadata, where);
    }
    if (result.tensors.size() == kMostTensors)
      Fail("{} describes more than {} tensors, the most that are read", what, kMostTensors);
    result.tensors.push_back(ReadTensor(name, entry, data, where));
  };
  // An object of objects that hold lists. A tensor's has some five values, the metadata may have many.
  ParseJsonMembers(text, what, JsonKind::kObject, "an object", 4, take);
  CheckNames(result.tensors, what);
  CheckCoverage(result.tensors, data, where);
  return result;
}

std::vector<float> ToFloats(const Tensor& tensor, std::string_view where) {
  std::vector<float> out(tensor.num_elements());
  if (tensor.type == "F32") {
    ConvertAll<float>(
        tensor, [](float x) { return x; }, out);
  } else if (tensor.type == "F16") {
    ConvertAll<uint16_t>(tensor, FromHalf, out);
  } else if (tensor.type == "BF16") {
    ConvertAll<uint16_t>(tensor, FromBrain, out);
  } else if (tensor.type == "F64") {
    constexpr double kLargest = std::numeric_limits<float>::max();
    // Beyond float's range the conversion itself would be undefined.
    ConvertAll<double>(
        tensor,
        [](double x) {
          return std::abs(x) <= kLargest ? static_cast<float>(x) : std::numeric_limits<float>::infinity();
        },
        out);
  } else {
    Fail("{}: tensor {} is {}; expected F32, F16, BF16 or F64", where, Quote(tensor.name), tensor.type);
  }
  const auto bad = std::find_if(out.begin(), out.end(), [](float x) { return !std::isfinite(x); });
  if (bad != out.end()) {
    Fail("{}: tensor {} holds {} at element {}; expected finite numbers", where, Quote(tensor.name),
         tensor.type == "F64" ? "a number that no float can hold" : std::to_string(*bad), bad - out.begin());
  }
  return out;
}

std::vector<std::byte> WriteSafetensors(std::span<const Tensor> tensors,
                                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const size_t end = offset + tensor.data.size();
    header[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::vector<std::byte> out(8 + text.size() + offset);
  const uint64_t length = text.size();
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, text.data(), text.size());
  auto at = out.begin() + static_cast<std::ptrdiff_t>(8 + text.size());
  for (const Tensor& tensor : tensors) at = std::copy(tensor.data.begin(), tensor.data.end(), at);
  return out;
}

std::vector<std::byte> ReadFileBytes(const std::filesystem::path& path) {
  uint64_t size = 0;
  std::ifstream file = OpenFile(path, size);
  return ReadBytes(file, size, path);
}

std::vector<std::byte> ReadSafetensorsBytes(const std::filesystem::path& path) {
  uint64_t size = 0;
  std::ifstream file = OpenFile(path, size);
  CheckStart(ReadBytes(file, std::min<uint64_t>(size, 9), path), size, QuotePath(path.string()));
  file.seekg(0);
  try {
    return ReadBytes(file, size, path);
  } catch (const std::bad_alloc&) {
    Fail("{} has {} bytes, more than there is memory", QuotePath(path.string()), size);
  }
}

}  // namespace octavo
