// Strict JSON; see json.h.
#include "engine/json.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/fail.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// Empties containers from the inside: the library's destructor takes memory for those that hold something. As deep as
// the limit at most.
void Empty(Json& value) noexcept {
  if (auto* list = value.get_ptr<Json::array_t*>()) {
    for (Json& member : *list) Empty(member);
    list->clear();
  } else if (auto* object = value.get_ptr<Json::object_t*>()) {
    for (auto& [key, member] : *object) Empty(member);
    object->clear();
  }
}

using Take = std::function<void(const std::string& key, const Json& value)>;

// Takes the parser's events and puts values together. (The library's own way, with a callback, looks at all members
// each time one is whole.)
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view what, JsonLimits limits) : what_(what), limits_(limits) {}

  // Hands the members of the outermost value to `take` instead of keeping them.
  void HandOver(JsonKind kind, std::string_view expected, const Take& take) {
    kind_ = kind == JsonKind::kObject ? Json::value_t::object : Json::value_t::array;
    expected_ = expected;
    take_ = &take;
  }

  JsonDocument TakeValue() { return std::move(value_); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // not in text
  bool start_object(size_t) override { return Open(Json::value_t::object); }
  bool start_array(size_t) override { return Open(Json::value_t::array); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& key) override {
    if (open_.empty()) {
      key_ = std::move(key);
      return true;
    }
    const auto [place, is_new] = open_.back()->get_ref<Json::object_t&>().emplace(std::move(key), nullptr);
    if (!is_new) Fail("{} has the key {} twice", what_, Quote(place->first));
    place_ = &place->second;
    return true;
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kNumberDoesNotFit = 406;
    if (error.id == kNumberDoesNotFit) Fail("{} has a number that does not fit", what_);
    Fail("{} is not valid JSON in UTF-8 (at byte {})", what_, byte);
  }

 private:
  // Puts a value where it belongs. Not yet a container's members, which would take memory to destroy.
  Json* Place(Json&& value) {
    if (take_ && !outer_is_open_) Fail("{} is {}; expected {}", what_, value.type_name(), expected_);
    if (++num_values_ > limits_.values) Fail("{} holds more than {} values", what_, limits_.values);
    if (open_.empty()) return &(*value_ = std::move(value));
    if (open_.back()->is_object()) return &(*place_ = std::move(value));
    return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
  }
  template <typename Value>
  bool Add(Value&& value) {
    Place(Json(std::forward<Value>(value)));
    return IsWhole();
  }
  bool Open(Json::value_t kind) {
    if (open_.size() + outer_is_open_ >= static_cast<size_t>(limits_.depth)) {
      Fail("{} is JSON nested more than {} deep", what_, limits_.depth);
    }
    if (take_ && !outer_is_open_ && kind == kind_) return outer_is_open_ = true;
    open_.push_back(Place(Json(kind)));
    return true;
  }
  bool Close() {
    if (open_.empty()) return true;  // the outermost
    open_.pop_back();
    return IsWhole();
  }
  bool IsWhole() {
    if (!take_ || !open_.empty()) return true;
    (*take_)(key_, *value_);
    value_.Clear();
    num_values_ = 0;
    return true;
  }

  const std::string_view what_;
  const JsonLimits limits_;
  Json::value_t kind_ = Json::value_t::null;
  std::string_view expected_;
  const Take* take_ = nullptr;
  bool outer_is_open_ = false;
  std::string key_;          // of the member that is put together
  JsonDocument value_;       // that member, or all
  std::vector<Json*> open_;  // the containers in it that the next value lies in
  Json* place_ = nullptr;    // of the next value, where that is in an object
  size_t num_values_ = 0;
};

void Parse(std::string_view text, std::string_view what, Builder& builder) {
  // The library takes a zero byte for the end of the text.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    Fail("{} is not valid JSON in UTF-8 (at byte {})", what, zero + 1);
  }
  Json::sax_parse(text, &builder);
}

}  // namespace

JsonDocument& JsonDocument::operator=(JsonDocument&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  value_ = std::move(other.value_);
  return *this;
}

void JsonDocument::Clear() noexcept {
  Empty(value_);
  value_ = nullptr;
}

JsonDocument ParseJson(std::string_view text, std::string_view what, JsonLimits limits) {
  Builder builder(what, limits);
  Parse(text, what, builder);
  return builder.TakeValue();
}

void ParseJsonMembers(std::string_view text, std::string_view what, JsonKind kind, std::string_view expected,
                      JsonLimits limits, const Take& take) {
  Builder builder(what, limits);
  builder.HandOver(kind, expected, take);
  Parse(text, what, builder);
}

}  // namespace octavo
