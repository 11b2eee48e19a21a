// Kernels in the manner of HIP programs; test_hip.py has the model of each.
#include "hip.h"

__global__ void generic_pointers(int *data, int n) {
  __shared__ int tile[64];
  int i = LOCAL_ID();
  int own[2] = {i, -i};
  tile[i] = data[GLOBAL_ID()];
  SYNC();
  int *chosen = i % 3 == 0 ? tile : i % 3 == 1 ? data + 64 * ocl_group_id(0) : own;
  data[GLOBAL_ID() + n] = chosen[i % 3 == 2 ? i & 1 : 63 - i];
}

template <typename T> __device__ T block_sum(T value) {
  __shared__ T part[256];
  int i = LOCAL_ID();
  part[i] = value;
  SYNC();
  for (uint step = ocl_local_size(0) / 2; step > 0; step /= 2) {
    if (i < (int)step)
      part[i] += part[i + step];
    SYNC();
  }
  return part[0];
}

__global__ void reduce(const int *in, int *sums, const double *wide, double *wide_sums) {
  int sum = block_sum(in[GLOBAL_ID()]);
  double wide_sum = block_sum(wide[GLOBAL_ID()]);
  if (LOCAL_ID() == 0) {
    sums[ocl_group_id(0)] = sum;
    wide_sums[ocl_group_id(0)] = wide_sum;
  }
}

__device__ int total = 5;
__device__ int bins[8];

__device__ void atomic_max(float *place, float value) {
  uint *word = reinterpret_cast<uint *>(place);
  uint old = __hip_atomic_load(word, __ATOMIC_RELAXED, AGENT);
  while (__builtin_bit_cast(float, old) < value &&
         !__hip_atomic_compare_exchange_strong(word, &old, __builtin_bit_cast(uint, value), __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, AGENT)) {
  }
}

__global__ void atomics(const int *in, int *out, float *most, double *sum, ulong *wide) {
  __shared__ int count[8];
  int i = LOCAL_ID(), value = in[GLOBAL_ID()];
  if (i < 8)
    count[i] = 0;
  SYNC();
  ADD(&count[value & 7], 1);
  int *place = i & 1 ? &count[value >> 4 & 7] : &bins[value >> 4 & 7];
  ADD(place, 100);
  SYNC();
  if (i < 8)
    ADD(&out[i], count[i]);
  ADD(&total, 1);
  atomic_max(most, (float)value);
  ADD(sum, 0.5);
  __hip_atomic_fetch_max(wide, (ulong)value << 32, __ATOMIC_RELAXED, AGENT);
  __hip_atomic_fetch_xor(wide + 1, 1ul << (value & 63), __ATOMIC_RELAXED, AGENT);
}

__global__ void read_globals(int *out) {
  int i = GLOBAL_ID();
  out[i] = i < 8 ? bins[i] : total;
}

__global__ void shuffles(const int *in, int *out) {
  int i = GLOBAL_ID(), lane = ocl_lane(), size = ocl_warp_size();
  int value = in[i], sum = value, prefix = value;
  for (int step = size / 2; step > 0; step /= 2)
    sum += ocl_shuffle_xor(sum, step);
  for (int step = 1; step < size; step *= 2) {
    int other = ocl_shuffle_up(prefix, step);
    if (lane >= step)
      prefix += other;
  }
  int below = ocl_shuffle_down(value, 1);
  out[4 * i] = sum;
  out[4 * i + 1] = prefix;
  out[4 * i + 2] = (lane + 1 < size ? below : 0) + 1000 * ocl_shuffle(value, (lane * 5 + 3) & (size - 1));
  out[4 * i + 3] = size | ocl_any(value == 7) << 8 | ocl_all(value < 1000) << 9;
}

// Classes with virtual functions.
struct Shape {
  float scale;
  __device__ Shape(float scale) : scale(scale) {}
  __device__ virtual float area(float x) const = 0;
  __device__ virtual int corners() const { return 0; }
};
struct Square : Shape {
  using Shape::Shape;
  __device__ float area(float x) const override { return scale * x * x; }
  __device__ int corners() const override { return 4; }
};
struct Circle : Shape {
  using Shape::Shape;
  __device__ float area(float x) const override { return 3.0f * scale * x * x; }
};
struct Named {
  int id = 17;
  __device__ virtual int name() const { return id; }
};
struct Both : Named, Square {
  __device__ Both(float scale) : Square(scale) {}
  __device__ int name() const override { return 100 * id + corners(); }
};
inline __device__ void *operator new(unsigned long, void *place) { return place; }

__global__ void virtual_calls(float *out) {
  int i = GLOBAL_ID();
  Square square(1.0f);
  Circle circle(2.0f);
  Both both(0.5f);
  const Shape *shapes[] = {&square, &circle, &both};
  const Shape *shape = shapes[i % 3];
  const Named *named = &both;
  out[i] = shape->area(out[i]) + 1000.0f * shape->corners() + (i % 5 == 0 ? named->name() : 0);
}

__global__ void make_objects(char *memory) {
  int i = GLOBAL_ID();
  if (i & 1)
    new (memory + 16 * i) Circle(i);
  else
    new (memory + 16 * i) Square(i);
}

__global__ void use_objects(const char *memory, float *out) {
  int i = GLOBAL_ID();
  out[i] = reinterpret_cast<const Shape *>(memory + 16 * i)->area(2.0f);
}

typedef int (*Function)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ int negated(int x) { return -x; }
__device__ Function functions[] = {twice, square, negated};

__global__ void function_table(int *data) {
  int i = GLOBAL_ID();
  data[i] = functions[i % 3](data[i]);
}

__device__ int apply(Function f, int x) { return f(x) + 1; }

__global__ void function_arguments(int *data) {
  int i = GLOBAL_ID();
  Function f = data[i] & 1 ? negated : twice;
  data[i] = apply(f, data[i]);
}

// What chipStar makes of the host's symbol look-up: a kernel that takes the address of a variable's memory.
__device__ int *bound;

__global__ void bind(int *memory) { bound = memory; }

__global__ void use_bound(int n) {
  int i = GLOBAL_ID();
  if (i < n)
    bound[i] = bound[i] * 3 + 1;
}

__global__ void address_of_total(ulong *out) { *out = (ulong)&total; }

__global__ void dynamic_memory(int *data, LOCAL int *dynamic) {
  int i = LOCAL_ID(), n = ocl_local_size(0);
  dynamic[i] = data[GLOBAL_ID()];
  short *halves = (short *)(dynamic + n);
  halves[i] = i;
  SYNC();
  data[GLOBAL_ID()] = dynamic[n - 1 - i] + halves[(i + 1) % n];
}

__global__ void say(int n) {
  if (GLOBAL_ID() == 3)
    printf("%s of %d: %5.2f %c %lx|%%\n", "item", n, 2.5, 'z', 0x123456789abul);
}

__global__ void math(const float *in, float *out, double *wide) {
  int i = GLOBAL_ID(), n = ocl_global_size(0);
  float x = in[i];
  out[i] = ocl_pow(x, 1.5f);
  out[n + i] = ocl_sin(x) + __builtin_sqrtf(x);
  out[2 * n + i] = __builtin_fmaf(x, x, -1.0f);
  out[3 * n + i] = __builtin_floorf(x) + __builtin_fabsf(-x) + __builtin_copysignf(1.0f, 5.0f - x);
  out[4 * n + i] = ocl_exp(-x) + ocl_erf(x);
  out[5 * n + i] = __builtin_fminf(x, 4.0f) + __builtin_roundf(x);
  wide[i] = ocl_log1p((double)x) + __builtin_sqrt((double)x) + __builtin_trunc((double)x);
}

__global__ void bits(const uint *in, uint *out) {
  int i = GLOBAL_ID(), n = ocl_global_size(0);
  uint x = in[i];
  out[i] = __builtin_popcount(x);
  out[n + i] = x ? __builtin_clz(x) : 32;
  out[2 * n + i] = x ? __builtin_ctz(x) : 32;
  out[3 * n + i] = __builtin_bitreverse32(x);
  out[4 * n + i] = __builtin_bswap32(x);
  out[5 * n + i] = __builtin_rotateleft32(x, x & 31);
  out[6 * n + i] = (uint)ocl_mul_hi((ulong)x << 32 | x, (ulong)x << 20);
  uint sum;
  out[7 * n + i] = __builtin_add_overflow(x, 0x90000000u, &sum) ? sum : ~sum;
}

struct Large {
  int index;
  char letters[5];
  float table[24];
  struct {
    uint low : 5, middle : 20, high : 7;
  } fields;
  long last;
};

__device__ long look(Large large, int i) {
  return (long)large.table[(i + large.index) % 24] + large.letters[i % 5];
}

__global__ void by_value(Large large, long *out) {
  int i = GLOBAL_ID();
  Large copy = large;
  copy.table[i % 24] += 1.0f;
  copy.letters[i % 5] ^= 1;
  out[i] = look(copy, i) + copy.fields.middle + copy.fields.high + large.last;
}

__global__ void halves(const _Float16 *in, _Float16 *out, bool *flags) {
  int i = GLOBAL_ID();
  __shared__ bool seen[64];
  seen[LOCAL_ID()] = in[i] > (_Float16)1.5f;
  SYNC();
  out[i] = in[i] * (_Float16)2.0f + (_Float16)1.0f;
  flags[i] = seen[63 - LOCAL_ID()];
}

// A prefix sum in one pass: each group looks back at what the groups before it have published.
__device__ uint tickets;

__global__ void look_back(const int *in, int *out, int *states, int *sums) {
  __shared__ int ticket, before, part[64];
  int i = LOCAL_ID();
  if (i == 0)
    ticket = ADD(&tickets, 1u);
  SYNC();
  int group = ticket;
  part[i] = in[64 * group + i];
  SYNC();
  for (int step = 1; step < 64; step *= 2) {
    int other = i >= step ? part[i - step] : 0;
    SYNC();
    part[i] += other;
    SYNC();
  }
  if (i == 0) {
    int sum = 0;
    sums[2 * group] = part[63];
    __hip_atomic_store(&states[group], 1, __ATOMIC_RELEASE, AGENT);
    for (int k = group - 1; k >= 0;) {
      int state = __hip_atomic_load(&states[k], __ATOMIC_ACQUIRE, AGENT);
      if (state == 0)
        continue;
      sum += sums[2 * k + state - 1];
      if (state == 2)
        break;
      k--;
    }
    sums[2 * group + 1] = sum + part[63];
    __hip_atomic_store(&states[group], 2, __ATOMIC_RELEASE, AGENT);
    before = sum;
  }
  SYNC();
  out[64 * group + i] = before + part[i];
}

// Divergent control flow with early returns, switch and nested loops.
__global__ void divergent(const int *in, int *out, int n) {
  int i = GLOBAL_ID();
  if (i >= n)
    return;
  int x = in[i], steps = 0;
  while (x != 1) {
    switch (x % 4) {
    case 0: x /= 4; steps += 2; continue;
    case 2: x /= 2; break;
    default:
      x = 3 * x + 1;
      if (steps > 200) {
        out[i] = -1;
        return;
      }
    }
    steps++;
    if (x <= 0)
      x = 1;
  }
  out[i] = steps;
}
