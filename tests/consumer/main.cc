// Uses octavo as a library: opens the built-in model, writes a text and scores it.
#include <cstdio>
#include <string>

#include "engine/error.h"
#include "engine/generate.h"
#include "engine/model.h"
#include "engine/score.h"

int main() {
  try {
    const octavo::Model model = octavo::Model::Open("tiny");  // or a .safetensors file, or a directory
    const std::string prompt = "ROMEO:";

    octavo::GenerateRequest request;
    request.prompt = model.vocabulary().Encode(prompt);
    request.options.max_chars = 60;
    request.seed = 1;
    const octavo::Completion completion = octavo::Generate(model, request);
    std::printf("%s%s\n", prompt.c_str(), completion.text.c_str());

    octavo::ScoreRequest text;
    text.text = model.vocabulary().Encode(prompt + completion.text);
    const octavo::Score score = octavo::ScoreText(model, text);
    std::printf("%zu characters, %.6f nats\n", score.log_probabilities.size(), score.nats);
  } catch (const octavo::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 1;
  }
}
