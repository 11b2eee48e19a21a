/* The whole builtin library: one module. See README.md for the functions and their errors. */

/* The order counts. clang-format off */
#include "common.h"

#include "f32/poly.h"
#include "f64/poly.h"
#include "math/poly_special.h"

#include "f64/mid.h"
#include "f64/pair.h"

#define FLOAT_BITS 32
#include "types.h"

#include "exact.inc"
#undef FLOAT_BITS
#define FLOAT_BITS 64
#include "types.h"

#include "exact.inc"

#include "f32/exp.cl"
#include "f32/log.cl"
#include "f32/trig.cl"
#include "f32/inverse_trig.cl"
#include "f32/hyperbolic.cl"
#include "f32/power.cl"
#include "f32/erf.cl"
#include "f32/gamma.cl"
#include "f32/geometric.cl"

#include "f64/exp.cl"
#include "f64/log.cl"
#include "f64/trig.cl"
#include "f64/inverse_trig.cl"
#include "f64/hyperbolic.cl"
#include "f64/power.cl"
#include "f64/erf.cl"
#include "f64/gamma.cl"
#include "math/fma.cl"
#include "math/toward_zero.cl"
#include "math/native.cl"
#include "math/half.cl"

#ifdef CLD_DEVICE
#include "atomics.cl"
#include "pipe.cl"
#include "llvm.cl"
#include "image/image.cl"
#include "image/block.cl"
#include "f32/scaled.cl"
#include "f64/scaled.cl"
#include "f64/scaled_hyperbolic.cl"
#include "f32/scaled_power.cl"
#endif
