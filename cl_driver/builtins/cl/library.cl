/* The whole builtin library: one module. See README.md for the functions and their errors. */

/* The order counts. clang-format off */
#include "common.h"

#include "poly_f32.h"
#include "poly_f64.h"
#include "poly_special.h"

#include "mid_f64.h"
#include "pair_f64.h"

#define FLOAT_BITS 32
#include "types.h"

#include "exact.inc"
#undef FLOAT_BITS
#define FLOAT_BITS 64
#include "types.h"

#include "exact.inc"

#include "exp_f32.cl"
#include "log_f32.cl"
#include "trig_f32.cl"
#include "inverse_trig_f32.cl"
#include "hyperbolic_f32.cl"
#include "power_f32.cl"
#include "erf_f32.cl"
#include "gamma_f32.cl"
#include "geometric_f32.cl"

#include "exp_f64.cl"
#include "log_f64.cl"
#include "trig_f64.cl"
#include "inverse_trig_f64.cl"
#include "hyperbolic_f64.cl"
#include "power_f64.cl"
#include "erf_f64.cl"
#include "gamma_f64.cl"
#include "fma.cl"
#include "toward_zero.cl"
#include "native.cl"
#include "half.cl"

#ifdef CLD_DEVICE
#include "atomics.cl"
#include "llvm.cl"
#include "image.cl"
#include "scaled_f32.cl"
#include "scaled_f64.cl"
#include "scaled_hyperbolic_f64.cl"
#include "scaled_power_f32.cl"
#endif
