// A stream in double precision with some arithmetic on it.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void double_axpy(global double *y, global const double *x, double a, double b) {
    size_t i = get_global_id(0);
    double v = x[i];
    y[i] = sqrt(a * v * v + b) / (v + 2.0);
}
