// Kepler's equation in double precision by Newton's method, until it stands still.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void kepler_double(global double *eccentric, global const double *mean,
                          global const double *eccentricity) {
    size_t i = get_global_id(0);
    double m = mean[i], e = eccentricity[i], x = m + e * sin(m);
    for (int n = 0; n < 20; n++) {
        double step = (x - e * sin(x) - m) / (1.0 - e * cos(x));
        x -= step;
        if (fabs(step) < 1e-13)
            break;
    }
    eccentric[i] = x;
}
