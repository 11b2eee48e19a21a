/* Blocks of an image's bytes, whatever its format (cl_intel_subgroups). Each function is about one row and one
 * work-item of a sub-group: its lane is so many values behind the coordinate, which counts bytes.
 *
 * Rows of pixels that share bytes have as many bytes here as they have pixels.
 *
 * Outside, reads give the pixels at the edge, byte by byte, and writes nothing: where the extension leaves
 * undefined what becomes of values that are larger than a pixel and begin near the end of a row, no byte
 * outside the row is touched. */

typedef uchar __attribute__((aligned(1))) block_u8;
typedef ushort __attribute__((aligned(1))) block_u16;
typedef uint __attribute__((aligned(1))) block_u32;
typedef ulong __attribute__((aligned(1))) block_u64;

/* More than all lanes of a sub-group, or all rows of a block, move by, and a multiple of EVERY. */
#define FAR 1008
/* A multiple of every size of a pixel. */
#define EVERY 48

/* Coordinates far outside are as good as those nearby, and sums of these do not overflow. */
HELPER int near(int at, int end) {
    if (at < -FAR) {
        at = at % EVERY - FAR;
    }
    return at < end ? at : end + (at - end) % EVERY;
}

/* The byte of a row, of `bytes`, that is read at a place: outside, one of the pixel at the edge. */
HELPER int byte_read(int place, int bytes, int element) {
    int behind = (place - bytes) % element, before = place % element;
    before += before < 0 ? element : 0;
    place = place < bytes ? place : bytes - element + behind;
    return place < 0 ? before : place;
}

#define DEFINE_READ_BLOCK(SPACE, PREFIX, KIND, T)                                                            \
    T __cld_image_##PREFIX##block_read_##KIND(SPACE uchar *data, int row_pitch, int4 size, uint element,     \
                                              int2 at, int row, int lane) {                                  \
        int bytes = size.x * (int)element, length = sizeof(T), last = size.y - 1;                            \
        int x = near(at.x, bytes) + lane * length, y = near(at.y, size.y) + row;                             \
        y = y > 0 ? y : 0;                                                                                   \
        y = y < last ? y : last;                                                                             \
        SPACE uchar *p = data + (long)y * row_pitch;                                                         \
        if (x >= 0 && x <= bytes - length) {                                                                 \
            return *(SPACE block_##KIND *)(p + x);                                                           \
        }                                                                                                    \
        ulong value = 0;                                                                                     \
        for (int k = 0; k < length; k++) {                                                                   \
            value |= (ulong)p[byte_read(x + k, bytes, element)] << 8 * k;                                       \
        }                                                                                                    \
        return (T)value;                                                                                     \
    }

#define DEFINE_BLOCK(KIND, T)                                                                                \
    DEFINE_READ_BLOCK(constant, , KIND, T)                                                                   \
    DEFINE_READ_BLOCK(global, global_, KIND, T)                                                              \
    void __cld_image_block_write_##KIND(global uchar *data, int row_pitch, int4 size, uint element, int2 at, \
                                        int row, int lane, T value) {                                        \
        int bytes = size.x * (int)element, length = sizeof(T);                                               \
        int x = near(at.x, bytes) + lane * length, y = near(at.y, size.y) + row;                             \
        if (y < 0 || y >= size.y) {                                                                          \
            return;                                                                                          \
        }                                                                                                    \
        global uchar *p = data + (long)y * row_pitch;                                                        \
        if (x >= 0 && x <= bytes - length) {                                                                 \
            *(global block_##KIND *)(p + x) = value;                                                         \
            return;                                                                                          \
        }                                                                                                    \
        for (int k = 0; k < length; k++) {                                                                   \
            if (x + k >= 0 && x + k < bytes) {                                                               \
                p[x + k] = (uchar)((ulong)value >> 8 * k);                                                   \
            }                                                                                                \
        }                                                                                                    \
    }
DEFINE_BLOCK(u8, uchar)
DEFINE_BLOCK(u16, ushort)
DEFINE_BLOCK(u32, uint)
DEFINE_BLOCK(u64, ulong)
