// Changes one thing that a model file says (a shape, a type, a name, a tensor too many, a value of the configuration, an entry of the
// vocabulary) and makes lengths, offsets and data agree with it again. Changes of single bytes never get that far: whatever they do to
// a shape or an offset, the container's own checks refuse at once, and the checks behind them are never tried.
#ifndef OCTAVO_TESTS_FUZZ_CHANGE_MODEL_H_
#define OCTAVO_TESTS_FUZZ_CHANGE_MODEL_H_

#include "tests/fuzz/inputs.h"

namespace octavo {

// Changes `parts`; `seed` decides what and how. False, and no change, when they are not JSON of the expected kind.
bool ChangeModel(Parts& parts, unsigned seed);

}  // namespace octavo

#endif  // OCTAVO_TESTS_FUZZ_CHANGE_MODEL_H_
