// The kernels of examples/kernels in OpenCL C: the same algorithms, with the same work for each thread. Where those use
// warps, whose functions OpenCL C does not have everywhere, these exchange through local memory.

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

__kernel void copy(int n, __global const float *restrict from, __global float *restrict to) {
  const int i = get_global_id(0);
  if (i < n)
    to[i] = from[i];
}

__kernel void triad(int n, float s, __global const float *restrict b, __global const float *restrict c,
                    __global float *restrict a) {
  const int i = get_global_id(0);
  if (i < n)
    a[i] = b[i] + s * c[i];
}

__kernel void saxpy(int n, float a, __global const float *restrict x, __global float *restrict y) {
  const int i = get_global_id(0);
  if (i < n)
    y[i] = a * x[i] + y[i];
}

__kernel void saxpy_float4(int n, float a, __global const float *restrict x, __global float *restrict y) {
  const int first = get_global_id(0), threads = get_global_size(0), vectors = n / 4;
  for (int i = first; i < vectors; i += threads)
    vstore4(a * vload4(i, x) + vload4(i, y), i, y);
  for (int i = 4 * vectors + first; i < n; i += threads)
    y[i] = a * x[i] + y[i];
}

#define FILL(name, T)                                         \
  __kernel void name(__global T *restrict x, T value, int n) { \
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) \
      x[i] = value;                                            \
  }

FILL(fill_float, float)
FILL(fill_uint, uint)
FILL(fill_ulong, ulong)

#define MATMUL(name, TILE)                                                                                      \
  __kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void name(                                      \
      __global const float *restrict A, __global const float *restrict B, __global float *restrict C, int m,    \
      int n, int k) {                                                                                           \
    __local float a[TILE][TILE];                                                                                \
    __local float b[TILE][TILE];                                                                                \
    const int tx = get_local_id(0), ty = get_local_id(1);                                                       \
    const int row = get_group_id(1) * TILE + ty, column = get_group_id(0) * TILE + tx;                          \
    float sum = 0;                                                                                              \
    for (int start = 0; start < k; start += TILE) {                                                             \
      a[ty][tx] = row < m && start + tx < k ? A[row * k + start + tx] : 0.0f;                                   \
      b[ty][tx] = column < n && start + ty < k ? B[(start + ty) * n + column] : 0.0f;                           \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
      for (int i = 0; i < TILE; ++i)                                                                            \
        sum += a[ty][i] * b[i][tx];                                                                             \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                             \
    }                                                                                                           \
    if (row < m && column < n)                                                                                  \
      C[row * n + column] = sum;                                                                                \
  }

MATMUL(matmul_16, 16)
MATMUL(matmul_32, 32)

#define THREADS 256

#define REDUCE(name, identity, combine)                                                       \
  __kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void name(                    \
      __global const float *restrict in, __global float *restrict out, int n) {               \
    __local float partial[THREADS];                                                           \
    const int thread = get_local_id(0);                                                       \
    float mine = identity;                                                                    \
    for (int i = get_global_id(0); i < n; i += get_global_size(0))                            \
      mine = combine(mine, in[i]);                                                            \
    partial[thread] = mine;                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                                             \
    for (int middle = THREADS / 2; middle > 0; middle /= 2) {                                 \
      if (thread < middle)                                                                    \
        partial[thread] = combine(partial[thread], partial[thread + middle]);                 \
      barrier(CLK_LOCAL_MEM_FENCE);                                                           \
    }                                                                                         \
    if (thread == 0)                                                                          \
      out[get_group_id(0)] = partial[0];                                                      \
  }

#define ADD(a, b) ((a) + (b))
REDUCE(reduce_sum, 0.0f, ADD)
REDUCE(reduce_largest, -INFINITY, fmax)

// There is no atomic addition of floats in OpenCL C: compare and exchange.
static void add_to(volatile __global float *sum, float value) {
  volatile __global uint *bits = (volatile __global uint *)sum;
  uint before, found = *bits;
  do {
    before = found;
    found = atomic_cmpxchg(bits, before, as_uint(as_float(before) + value));
  } while (found != before);
}

__kernel void warp_reduce(__global const float *restrict in, __global float *restrict out, int n) {
  __local float lanes[1024];
  const int thread = get_local_id(0), lane = thread % 32, threads = get_local_size(0);
  float sum = 0.0f;
  for (int i = get_global_id(0); i < n; i += get_global_size(0))
    sum += in[i];
  lanes[thread] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int offset = 16; offset > 0; offset /= 2) {
    if (lane < offset)
      lanes[thread] += lanes[thread + offset];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (thread == 0) {
    sum = 0.0f;
    for (int first = 0; first < threads; first += 32)
      sum += lanes[first];
    add_to(out, sum);
  }
}

#define SCAN_THREADS 128
#define ITEMS 7

__kernel __attribute__((reqd_work_group_size(SCAN_THREADS, 1, 1))) void inclusive_scan(
    __global const uint *restrict in, __global uint *restrict out, int n, volatile __global ulong *states,
    volatile __global uint *ticket) {
  __local uint exchange[SCAN_THREADS * ITEMS];
  __local uint sums[SCAN_THREADS];
  __local uint before;
  __local int tile;
  const int thread = get_local_id(0);
  if (thread == 0)
    tile = atomic_inc(ticket);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int first = tile * SCAN_THREADS * ITEMS;
  for (int item = 0; item < ITEMS; ++item) {
    const int i = item * SCAN_THREADS + thread;
    exchange[i] = first + i < n ? in[first + i] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint values[ITEMS], sum = 0;
  for (int item = 0; item < ITEMS; ++item) {
    sum += exchange[thread * ITEMS + item];
    values[item] = sum;
  }
  sums[thread] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int distance = 1; distance < SCAN_THREADS; distance *= 2) {
    const uint other = thread >= distance ? sums[thread - distance] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[thread] += other;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (thread == SCAN_THREADS - 1) {
    const uint own = sums[thread];
    if (tile > 0)
      atom_xchg(&states[tile], (ulong)1 << 32 | own);
    uint found = 0;
    for (int earlier = tile - 1; earlier >= 0; --earlier) {
      ulong state;
      do
        state = atom_add(&states[earlier], (ulong)0);
      while (state >> 32 == 0);
      found += (uint)state;
      if (state >> 32 == 2)
        break;
    }
    before = found;
    atom_xchg(&states[tile], (ulong)2 << 32 | (found + own));
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint offset = before + sums[thread] - sum;
  for (int item = 0; item < ITEMS; ++item)
    exchange[thread * ITEMS + item] = offset + values[item];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int item = 0; item < ITEMS; ++item) {
    const int i = item * SCAN_THREADS + thread;
    if (first + i < n)
      out[first + i] = exchange[i];
  }
}

__kernel void histogram(__global const float *restrict values, int n, float low, float scale, int bins,
                        __global uint *restrict counts, __local uint *mine) {
  const int thread = get_local_id(0), threads = get_local_size(0);
  for (int bin = thread; bin < bins; bin += threads)
    mine[bin] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    const float position = floor((values[i] - low) * scale);
    if (position >= 0.0f && position < bins)
      atomic_inc(&mine[(int)position]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int bin = thread; bin < bins; bin += threads)
    if (mine[bin] > 0)
      atomic_add(&counts[bin], mine[bin]);
}

#define SOFTMAX_THREADS 128

typedef struct {
  float largest, sum;
} Partial;

static Partial merge_partials(Partial a, Partial b) {
  Partial result;
  result.largest = fmax(a.largest, b.largest);
  result.sum = result.largest == -INFINITY
                   ? 0.0f
                   : a.sum * exp(a.largest - result.largest) + b.sum * exp(b.largest - result.largest);
  return result;
}

__kernel __attribute__((reqd_work_group_size(SOFTMAX_THREADS, 1, 1))) void softmax(
    __global const float *restrict in, __global float *restrict out, int columns) {
  __local Partial partials[SOFTMAX_THREADS];
  const int thread = get_local_id(0);
  __global const float *row = in + (size_t)get_group_id(0) * columns;
  __global float *result = out + (size_t)get_group_id(0) * columns;
  Partial p = {-INFINITY, 0.0f};
  for (int i = thread; i < columns; i += SOFTMAX_THREADS) {
    const float x = row[i];
    if (x > p.largest) {
      p.sum *= exp(p.largest - x);
      p.largest = x;
    }
    if (p.largest > -INFINITY)
      p.sum += exp(x - p.largest);
  }
  partials[thread] = p;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int middle = SOFTMAX_THREADS / 2; middle > 0; middle /= 2) {
    if (thread < middle)
      partials[thread] = merge_partials(partials[thread], partials[thread + middle]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float largest = partials[0].largest, scale = 1.0f / partials[0].sum;
  for (int i = thread; i < columns; i += SOFTMAX_THREADS)
    result[i] = exp(row[i] - largest) * scale;
}

typedef struct {
  float count, mean, squares;
} Moments;

static Moments merge_moments(Moments a, Moments b) {
  Moments result = a;
  const float count = a.count + b.count;
  if (count == 0.0f)
    return result;
  const float delta = b.mean - a.mean, part = b.count / count;
  result.count = count;
  result.mean = a.mean + delta * part;
  result.squares = a.squares + b.squares + delta * delta * a.count * part;
  return result;
}

#define NORM_ROWS 4

__kernel __attribute__((reqd_work_group_size(32, NORM_ROWS, 1))) void layer_norm(
    __global const float *restrict in, __global const float *restrict gamma, __global const float *restrict beta,
    __global float *restrict out, int rows, int columns, float epsilon) {
  __local Moments moments[NORM_ROWS][32];
  const int lane = get_local_id(0), own = get_local_id(1);
  const int row = get_group_id(0) * NORM_ROWS + own;
  const int end = row < rows ? columns : 0;
  __global const float *x = in + (size_t)row * columns;
  __global float *y = out + (size_t)row * columns;
  Moments m = {0.0f, 0.0f, 0.0f};
  for (int i = lane; i < end; i += 32) {
    const float value = x[i], delta = value - m.mean;
    m.count += 1.0f;
    m.mean += delta / m.count;
    m.squares += delta * (value - m.mean);
  }
  moments[own][lane] = m;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int middle = 16; middle > 0; middle /= 2) {
    if (lane < middle)
      moments[own][lane] = merge_moments(moments[own][lane], moments[own][lane + middle]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float mean = moments[own][0].mean, scale = rsqrt(moments[own][0].squares / columns + epsilon);
  for (int i = lane; i < end; i += 32)
    y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}

#define HALO 2
#define STENCIL_WIDTH 32
#define STENCIL_HEIGHT 8

__kernel __attribute__((reqd_work_group_size(STENCIL_WIDTH, STENCIL_HEIGHT, 1))) void heat_step(
    __global const float *restrict in, __global float *restrict out, int rows, int columns, float rate) {
  __local float tile[STENCIL_HEIGHT + 2 * HALO][STENCIL_WIDTH + 2 * HALO];
  const int left = (int)get_group_id(0) * STENCIL_WIDTH - HALO;
  const int top = (int)get_group_id(1) * STENCIL_HEIGHT - HALO;
  const int tx = get_local_id(0), ty = get_local_id(1);
  for (int y = ty; y < STENCIL_HEIGHT + 2 * HALO; y += STENCIL_HEIGHT)
    for (int x = tx; x < STENCIL_WIDTH + 2 * HALO; x += STENCIL_WIDTH) {
      const int row = top + y, column = left + x;
      const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
      tile[y][x] = inside ? in[row * columns + column] : 0.0f;
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int column = get_global_id(0), row = get_global_id(1);
  if (row >= rows || column >= columns)
    return;
  const int x = tx + HALO, y = ty + HALO;
  const float centre = tile[y][x];
  const float near = tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];
  const float far = tile[y - 2][x] + tile[y + 2][x] + tile[y][x - 2] + tile[y][x + 2];
  out[row * columns + column] = centre + rate * ((16.0f * near - far - 60.0f * centre) / 12.0f);
}

#define TRANSPOSE_TILE 32
#define TRANSPOSE_ROWS 8

__kernel __attribute__((reqd_work_group_size(TRANSPOSE_TILE, TRANSPOSE_ROWS, 1))) void transpose(
    __global const float *restrict in, __global float *restrict out, int rows, int columns) {
  __local float tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 1];
  const int tx = get_local_id(0), ty = get_local_id(1);
  int column = get_group_id(0) * TRANSPOSE_TILE + tx, row = get_group_id(1) * TRANSPOSE_TILE + ty;
  for (int step = 0; step < TRANSPOSE_TILE; step += TRANSPOSE_ROWS)
    if (row + step < rows && column < columns)
      tile[ty + step][tx] = in[(size_t)(row + step) * columns + column];
  barrier(CLK_LOCAL_MEM_FENCE);
  column = get_group_id(1) * TRANSPOSE_TILE + tx;
  row = get_group_id(0) * TRANSPOSE_TILE + ty;
  for (int step = 0; step < TRANSPOSE_TILE; step += TRANSPOSE_ROWS)
    if (row + step < columns && column < rows)
      out[(size_t)(row + step) * rows + column] = tile[tx][ty + step];
}

__kernel void mandelbrot(__global int *restrict counts, int width, int height, float left, float top, float step,
                         int most) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column >= width || row >= height)
    return;
  const float cx = left + column * step, cy = top + row * step;
  float x = 0, y = 0;
  int count = 0;
  while (count < most) {
    const float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f)
      break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    ++count;
  }
  counts[row * width + column] = count;
}

#define DIGITS 16
#define LANES 32

__kernel void count_digits(__global const uint *restrict keys, int n, int shift, __global uint *restrict counts) {
  __local uint mine[DIGITS];
  const int i = get_global_id(0), thread = get_local_id(0);
  if (thread < DIGITS)
    mine[thread] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n)
    atomic_inc(&mine[keys[i] >> shift & (DIGITS - 1)]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (thread < DIGITS)
    counts[thread * get_num_groups(0) + get_group_id(0)] = mine[thread];
}

__kernel void scan_counts(__global uint *counts, int n, __local uint *sums) {
  const int thread = get_local_id(0), threads = get_local_size(0);
  uint before = 0;
  for (int start = 0; start < n; start += threads) {
    const int i = start + thread;
    const uint value = i < n ? counts[i] : 0;
    sums[thread] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < threads; distance *= 2) {
      const uint other = thread >= distance ? sums[thread - distance] : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      sums[thread] += other;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n)
      counts[i] = before + sums[thread] - value;
    before += sums[threads - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void scatter(
    __global const uint *restrict in, __global uint *restrict out, int n, int shift,
    __global const uint *restrict offsets) {
  __local uint first[THREADS / LANES][DIGITS];
  __local int digits[THREADS];
  const int thread = get_local_id(0), lane = thread % LANES, warp = thread / LANES, i = get_global_id(0);
  const bool present = i < n;
  const uint key = present ? in[i] : 0;
  const int digit = key >> shift & (DIGITS - 1);
  digits[thread] = present ? digit : -1;
  if (lane < DIGITS)
    first[warp][lane] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  int rank = 0, peers = 0;
  for (int other = 0; other < LANES; ++other) {
    const int same = digits[warp * LANES + other] == digit;
    rank += same && other < lane;
    peers += same;
  }
  if (present && rank == 0)
    first[warp][digit] = peers;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (thread < DIGITS) {
    uint next = offsets[thread * get_num_groups(0) + get_group_id(0)];
    for (int w = 0; w < THREADS / LANES; ++w) {
      const uint keys = first[w][thread];
      first[w][thread] = next;
      next += keys;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (present)
    out[first[warp][digit] + rank] = key;
}

#define VECTORS 16
#define ROWS 64
#define COLUMNS 32

#define ATTENTION(name, CAUSAL)                                                                                  \
  __kernel __attribute__((reqd_work_group_size(ROWS, 1, 1))) void name(                                          \
      __global const float4 *restrict Q, __global const float4 *restrict K, __global const float4 *restrict V,   \
      __global float4 *restrict out, int length) {                                                               \
    __local float4 keys[COLUMNS][VECTORS];                                                                       \
    __local float4 values[COLUMNS][VECTORS];                                                                     \
    const int thread = get_local_id(0), row = get_global_id(0);                                                  \
    const size_t head = (size_t)get_group_id(1) * length * VECTORS;                                              \
    const float scale = rsqrt(4.0f * VECTORS);                                                                   \
    float4 query[VECTORS], sums[VECTORS];                                                                        \
    for (int i = 0; i < VECTORS; ++i) {                                                                          \
      query[i] = row < length ? Q[head + (size_t)row * VECTORS + i] : (float4)(0.0f);                            \
      sums[i] = (float4)(0.0f);                                                                                  \
    }                                                                                                            \
    float largest = -INFINITY, total = 0.0f;                                                                     \
    const int last = CAUSAL ? min(length, ((int)get_group_id(0) + 1) * ROWS) : length;                           \
    for (int start = 0; start < last; start += COLUMNS) {                                                        \
      const int present = min(COLUMNS, length - start);                                                          \
      for (int i = thread; i < present * VECTORS; i += ROWS) {                                                   \
        keys[i / VECTORS][i % VECTORS] = K[head + (size_t)start * VECTORS + i];                                  \
        values[i / VECTORS][i % VECTORS] = V[head + (size_t)start * VECTORS + i];                                \
      }                                                                                                          \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
      const int visible = CAUSAL ? min(present, row - start + 1) : present;                                      \
      float scores[COLUMNS], top = largest;                                                                      \
      for (int j = 0; j < visible; ++j) {                                                                        \
        float score = 0.0f;                                                                                      \
        for (int i = 0; i < VECTORS; ++i)                                                                        \
          score += dot(query[i], keys[j][i]);                                                                    \
        scores[j] = score * scale;                                                                               \
        top = fmax(top, scores[j]);                                                                              \
      }                                                                                                          \
      if (visible > 0) {                                                                                         \
        const float shrink = exp(largest - top);                                                                 \
        total *= shrink;                                                                                         \
        for (int i = 0; i < VECTORS; ++i)                                                                        \
          sums[i] *= shrink;                                                                                     \
        largest = top;                                                                                           \
      }                                                                                                          \
      for (int j = 0; j < visible; ++j) {                                                                        \
        const float weight = exp(scores[j] - largest);                                                           \
        total += weight;                                                                                         \
        for (int i = 0; i < VECTORS; ++i)                                                                        \
          sums[i] += weight * values[j][i];                                                                      \
      }                                                                                                          \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
    }                                                                                                            \
    if (row < length)                                                                                            \
      for (int i = 0; i < VECTORS; ++i)                                                                          \
        out[head + (size_t)row * VECTORS + i] = sums[i] / total;                                                 \
  }

ATTENTION(attention, false)
ATTENTION(causal_attention, true)
