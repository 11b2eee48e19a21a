/* What makes nd-ranges, of which clang's back end makes wrong instructions (native_shim/clang/blocks.c). The
 * structure is that of OpBuildNDRange (SPIR-V), and struct cld_ndrange of native_shim/src/abi/kernel_abi.h. */

struct ndrange {
    uint dimensions;
    size_t offset[3], size[3], group[3]; /* group: 0 where it is left to the driver */
};

#define OF_DIMENSIONS(n)                                                                                     \
    static struct ndrange ndrange_of_##n(__private const size_t *offset, __private const size_t *size,       \
                                         __private const size_t *group) {                                    \
        struct ndrange made = {n, {0}, {1, 1, 1}, {0}};                                                      \
        for (int i = 0; i < n; i++) {                                                                        \
            made.offset[i] = offset ? offset[i] : 0;                                                         \
            made.size[i] = size[i];                                                                          \
            made.group[i] = group ? group[i] : 0;                                                            \
        }                                                                                                    \
        return made;                                                                                         \
    }

OF_DIMENSIONS(1)
OF_DIMENSIONS(2)
OF_DIMENSIONS(3)

struct ndrange OVERLOAD cld_ndrange_1D(size_t size) {
    return ndrange_of_1(0, &size, 0);
}

struct ndrange OVERLOAD cld_ndrange_1D(size_t size, size_t group) {
    return ndrange_of_1(0, &size, &group);
}

struct ndrange OVERLOAD cld_ndrange_1D(size_t offset, size_t size, size_t group) {
    return ndrange_of_1(&offset, &size, &group);
}

#define OF_ARRAYS(n)                                                                                         \
    struct ndrange OVERLOAD cld_ndrange_##n##D(__private const size_t *size) {                               \
        return ndrange_of_##n(0, size, 0);                                                                   \
    }                                                                                                        \
    struct ndrange OVERLOAD cld_ndrange_##n##D(__private const size_t *size,                                 \
                                               __private const size_t *group) {                              \
        return ndrange_of_##n(0, size, group);                                                               \
    }                                                                                                        \
    struct ndrange OVERLOAD cld_ndrange_##n##D(                                                              \
        __private const size_t *offset, __private const size_t *size, __private const size_t *group) {       \
        return ndrange_of_##n(offset, size, group);                                                          \
    }

OF_ARRAYS(2)
OF_ARRAYS(3)
