/* A library with nothing but the need of libcl_driver.so, by a path relative to its own place
 * (native_shim/beside.py). */
