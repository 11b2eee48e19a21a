/* asin, acos, atan, atan2 and their forms in multiples of pi, double precision: as in
 * cl/f32/inverse_trig.cl. */

#define ONE_OVER_PI_F64 0x1.45f306dc9c883p-2 /* its low part is in poly_asinpi, poly_atanpi */

#define PI_2_RATIO_F64 0x1.678afae35cdd1p-55 /* PI_2_2_F64 / PI_2_1_F64 */

HELPER double asin_core_f64(double ax, __private double *tail) {
    double square = ax * ax, half_rest = FMA(ax, -0.5, 0.5);
    double z = half_rest < square ? half_rest : square; /* the latter up to 1/2 */
    double t = ax > 0.5 ? ROOT(z) : ax;
    *tail = t * z * poly_asin_f64(z);
    return t;
}

HELPER double asinpi_core_f64(double ax, __private double *tail) {
    double z = ax > 0.5 ? FMA(ax, -0.5, 0.5) : ax * ax;
    double t = ax > 0.5 ? ROOT(z) : ax;
    *tail = t * poly_asinpi_f64(z);
    return t;
}

double __cld_asin_f64(double x) {
    double tail, ax = ABS(x), t = asin_core_f64(ax, &tail);
    double quarter = 0.5 * PI_2_1_F64; /* what 2 t differs from it by is exact where results are least */
    double outer = quarter + (FMA(t, -2.0, quarter) - FMA(tail, 2.0, -PI_2_2_F64));
    return flip_f64(ax > 0.5 ? outer : t + tail, as_ulong(x));
}

/* pi/2 - core up to 1/2; else t is -2 times what it is for asin, and the result that core from 0 or pi on. */
double __cld_acos_f64(double x) {
    double ax = ABS(x), square = ax * ax, half_rest = FMA(ax, -0.5, 0.5);
    double z = half_rest < square ? half_rest : square; /* the latter up to 1/2 */
    double t = ax > 0.5 ? -2.0 * ROOT(z) : ax;
    double core = flip_f64(FMA(t * z, poly_asin_f64(z), t), as_ulong(x));
    double base = as_long(x) < 0 ? 2.0 * PI_2_1_F64 : 0.0;
    base = ax > 0.5 ? base : PI_2_1_F64;
    return base + FMA(base, PI_2_RATIO_F64, -core);
}

double __cld_asinpi_f64(double x) {
    double tail, ax = ABS(x), t = asinpi_core_f64(ax, &tail);
    double outer = FMA(tail, -2.0, FMA(t, -2.0 * ONE_OVER_PI_F64, 0.5));
    return flip_f64(ax > 0.5 ? outer : FMA(t, ONE_OVER_PI_F64, tail), as_ulong(x));
}

double __cld_acospi_f64(double x) {
    double tail, ax = ABS(x), t = asinpi_core_f64(ax, &tail);
    double core = FMA(t, ONE_OVER_PI_F64, tail);
    double outer = x < 0.0 ? FMA(core, -2.0, 1.0) : 2.0 * core;
    return ax > 0.5 ? outer : 0.5 - flip_f64(core, as_ulong(x));
}

/* 1 / ax for ax above 1, about 0 for very large ones. */
HELPER double inverse_f64(double ax) {
    return DIVIDE(1.0, ax > 0x1p600 ? 0x1p600 : ax);
}

HELPER double atan_core_f64(double t) {
    double z = t * t;
    return FMA(t * z, poly_atan_f64(z), t);
}

HELPER double atanpi_core_f64(double t) {
    return FMA(t, ONE_OVER_PI_F64, t * poly_atanpi_f64(t * t));
}

/* 0, pi/4 or pi/2, and atan of x, (x - 1) / (x + 1) or -1 / x */
double __cld_atan_f64(double x) {
    double ax = ABS(x), c = ax > 0x1p600 ? 0x1p600 : ax;
    bool middle = c > 0x1.a827999fcef32p-2, far = c > 0x1.3504f333f9de6p1;
    /* a mask for each, where other selections take more */
    double above = (far ? 0.0 : c) - (middle ? 1.0 : 0.0), below = (middle ? c : 0.0) + (far ? 0.0 : 1.0);
    double base = (middle ? 0.5 * PI_2_1_F64 : 0.0) + (far ? 0.5 * PI_2_1_F64 : 0.0);
    double t = DIVIDE(above, below), z = t * t;
    double tail = FMA(t * z, poly_atan_near_f64(z), base * PI_2_RATIO_F64);
    return flip_f64((base + t) + tail, as_ulong(x)); /* the first sum is exact where the result is least */
}

double __cld_atanpi_f64(double x) {
    double ax = ABS(x);
    double core = atanpi_core_f64(ax > 1.0 ? inverse_f64(ax) : ax);
    return flip_f64(ax > 1.0 ? 0.5 - core : core, as_ulong(x));
}

HELPER double ratio_f64(double ay, double ax, __private bool *swap) {
    *swap = ay > ax;
    double above = *swap ? ax : ay;
    double below = *swap ? ay : ax;
    double t = above / below;
    return above == below ? (below == 0.0 ? 0.0 : 1.0) : t;
}

double __cld_atan2_f64(double y, double x) {
    bool swap;
    double core = atan_core_f64(ratio_f64(ABS(y), ABS(x), &swap));
    core = swap ? PI_2_1_F64 - (core - PI_2_2_F64) : core;
    core = as_long(x) < 0 ? 2.0 * PI_2_1_F64 - (core - 2.0 * PI_2_2_F64) : core;
    return flip_f64(core, as_ulong(y));
}

double __cld_atan2pi_f64(double y, double x) {
    bool swap;
    double core = atanpi_core_f64(ratio_f64(ABS(y), ABS(x), &swap));
    core = swap ? 0.5 - core : core;
    core = as_long(x) < 0 ? 1.0 - core : core;
    return flip_f64(core, as_ulong(y));
}
