// Random models of any shape, for checks and tests.
#ifndef OCTAVO_ENGINE_CHECK_MODELS_H_
#define OCTAVO_ENGINE_CHECK_MODELS_H_

#include "engine/check/case.h"
#include "engine/model.h"

namespace octavo::check {

// A model of these parameters, whose vocabulary is '\n' and then code points from U+0020 on.
Model ModelWithWeights(const ModelConfig& config, Weights weights);

// A model with random weights, about as large as trained ones. `config` needs its sizes and activation.
Model RandomModel(Random& random, ModelConfig config);

// One case of a whole model of random odd shape: logits within 8 times the error that a plain float pass makes, the same bits from a text
// pass, from steps in a random lane, and from steps behind a prefill.
Outcome CheckModel(Random& random);

// The same for a given model.
Outcome CheckModel(Random& random, const Model& model);

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_MODELS_H_
