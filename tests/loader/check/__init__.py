"""The check mode (CL_DRIVER_CHECK): kernels with one known defect each, and twins without."""
