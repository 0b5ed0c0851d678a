// Completions on their way to the reader, in the format asked for, counted.
#ifndef OCTAVO_TOOLS_COMPLETIONS_H_
#define OCTAVO_TOOLS_COMPLETIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "engine/generate.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/prompts.h"
#include "tools/requests.h"

namespace octavo::tools {

class CompletionWriter {
 public:
  // `format` is text, lines or jsonl. The others must outlive the writer.
  CompletionWriter(std::string format, const PromptReader& reader, Output& output, Progress& progress)
      : format_(std::move(format)), reader_(reader), output_(output), progress_(progress) {}

  void Write(const GenerateRequest& request, const Completion& completion);

  // What Write writes in the formats lines and jsonl.
  std::string LineOf(const GenerateRequest& request, const Completion& completion) const;

  // Counts a record that stands in the output already.
  void Skip(const GenerateRequest& request);

  // As Write in the format text, but each character as soon as it is known, until a stop is asked for. Of a text that this cuts off, the
  // characters that were shown count.
  void Stream(const Model& model, const GenerateRequest& request, const RunOptions& options);

  bool failed() const { return failed_; }

  // "3 completions (1 failed), 40 characters in 0.002 s, 20000 characters a second"; "1 completion (interrupted), …"
  std::string Totals(double seconds) const;

 private:
  void Count(const Origin& origin, const Completion& completion);

  const std::string format_;
  const PromptReader& reader_;
  Output& output_;
  Progress& progress_;
  bool began_ = false, failed_ = false, interrupted_ = false;
  uint64_t num_completions_ = 0, num_failed_ = 0, num_chars_ = 0;
};

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_COMPLETIONS_H_
