// What a C++ programmer writes with OpenMP for the same work as the kernels in examples/kernels. It is compiled with
// -O3 -march=native -fopenmp.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <omp.h>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void saxpy(long n, float a, const float *x, float *y) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i)
    y[i] = a * x[i] + y[i];
}

EXPORT void copy(long n, const float *from, float *to) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i)
    to[i] = from[i];
}

EXPORT void triad(long n, float s, const float *b, const float *c, float *a) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i)
    a[i] = b[i] + s * c[i];
}

// The algorithm of the kernel: a block per tile of c, the threads of a block as loops between the barriers, and the
// tiles of a and b in local arrays.
template <int T>
static void matmul_tiles(int m, int n, int k, const float *a, const float *b, float *c) {
  const int tiles_x = (n + T - 1) / T, tiles_y = (m + T - 1) / T;
#pragma omp parallel for collapse(2)
  for (int by = 0; by < tiles_y; ++by)
    for (int bx = 0; bx < tiles_x; ++bx) {
      float tile_a[T][T], tile_b[T][T], sum[T][T] = {};
      for (int first = 0; first < k; first += T) {
        for (int y = 0; y < T; ++y)
          for (int x = 0; x < T; ++x) {
            const int row = by * T + y, column = bx * T + x;
            tile_a[y][x] = row < m && first + x < k ? a[long(row) * k + first + x] : 0.0f;
            tile_b[y][x] = first + y < k && column < n ? b[long(first + y) * n + column] : 0.0f;
          }
        for (int y = 0; y < T; ++y)
          for (int i = 0; i < T; ++i)
            for (int x = 0; x < T; ++x)
              sum[y][x] += tile_a[y][i] * tile_b[i][x];
      }
      for (int y = 0; y < T; ++y)
        for (int x = 0; x < T; ++x) {
          const int row = by * T + y, column = bx * T + x;
          if (row < m && column < n)
            c[long(row) * n + column] = sum[y][x];
        }
    }
}

EXPORT void matmul(long m, long n, long k, const float *a, const float *b, float *c) {
  matmul_tiles<16>(m, n, k, a, b, c);
}

EXPORT void matmul_32(long m, long n, long k, const float *a, const float *b, float *c) {
  matmul_tiles<32>(m, n, k, a, b, c);
}

EXPORT void sum(long n, const float *x, float *result) {
  float total = 0.0f;
#pragma omp parallel for simd reduction(+ : total)
  for (long i = 0; i < n; ++i)
    total += x[i];
  *result = total;
}

EXPORT void largest(long n, const float *x, float *result) {
  float most = -INFINITY;
#pragma omp parallel for simd reduction(max : most)
  for (long i = 0; i < n; ++i)
    most = x[i] > most ? x[i] : most;
  *result = most;
}

// Inclusive. Each core scans its own part, and then adds the sum of the parts before it.
EXPORT void scan(long n, const uint32_t *x, uint32_t *y) {
  std::vector<uint32_t> before(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    const long part = omp_get_thread_num(), parts = omp_get_num_threads();
    const long first = n * part / parts, end = n * (part + 1) / parts;
    uint32_t sum = 0;
    for (long i = first; i < end; ++i)
      y[i] = sum += x[i];
    before[part + 1] = sum;
#pragma omp barrier
    uint32_t offset = 0;
    for (long i = 0; i <= part; ++i)
      offset += before[i];
    for (long i = first; i < end; ++i)
      y[i] += offset;
  }
}

EXPORT void histogram(long n, const float *x, float low, float scale, long bins, uint32_t *counts) {
  std::fill(counts, counts + bins, 0u);
#pragma omp parallel
  {
    std::vector<uint32_t> own(bins);
#pragma omp for nowait
    for (long i = 0; i < n; ++i) {
      const float position = floorf((x[i] - low) * scale);
      if (position >= 0.0f && position < bins)
        ++own[int(position)];
    }
#pragma omp critical
    for (long i = 0; i < bins; ++i)
      counts[i] += own[i];
  }
}

EXPORT void softmax(long rows, long columns, const float *x, float *y) {
#pragma omp parallel for
  for (long r = 0; r < rows; ++r) {
    const float *from = x + r * columns;
    float *to = y + r * columns, largest = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : largest)
    for (long c = 0; c < columns; ++c)
      largest = from[c] > largest ? from[c] : largest;
#pragma omp simd reduction(+ : sum)
    for (long c = 0; c < columns; ++c)
      sum += to[c] = expf(from[c] - largest);
    for (long c = 0; c < columns; ++c)
      to[c] /= sum;
  }
}

EXPORT void layer_norm(long rows, long columns, const float *x, const float *gamma, const float *beta, float epsilon,
                       float *y) {
#pragma omp parallel for
  for (long r = 0; r < rows; ++r) {
    const float *from = x + r * columns;
    float *to = y + r * columns, mean = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : mean)
    for (long c = 0; c < columns; ++c)
      mean += from[c];
    mean /= columns;
#pragma omp simd reduction(+ : squares)
    for (long c = 0; c < columns; ++c)
      squares += (from[c] - mean) * (from[c] - mean);
    const float scale = 1.0f / sqrtf(squares / columns + epsilon);
    for (long c = 0; c < columns; ++c)
      to[c] = (from[c] - mean) * scale * gamma[c] + beta[c];
  }
}

// Two neighbours on each side, along both axes; what lies outside is zero.
EXPORT void stencil(long rows, long columns, float rate, const float *x, float *y) {
#pragma omp parallel for
  for (long r = 0; r < rows; ++r) {
    auto point = [&](long dr, long c) {
      return r + dr >= 0 && r + dr < rows && c >= 0 && c < columns ? x[(r + dr) * columns + c] : 0.0f;
    };
    auto step = [&](long c) {
      const float near = point(-1, c) + point(1, c) + point(0, c - 1) + point(0, c + 1);
      const float far = point(-2, c) + point(2, c) + point(0, c - 2) + point(0, c + 2);
      y[r * columns + c] = x[r * columns + c] + rate * ((16.0f * near - far - 60.0f * x[r * columns + c]) / 12.0f);
    };
    if (r < 2 || r >= rows - 2 || columns < 5) {
      for (long c = 0; c < columns; ++c)
        step(c);
      continue;
    }
    step(0);
    step(1);
    const float *const row = x + r * columns;
    for (long c = 2; c < columns - 2; ++c) {
      const float near = row[c - columns] + row[c + columns] + row[c - 1] + row[c + 1];
      const float far = row[c - 2 * columns] + row[c + 2 * columns] + row[c - 2] + row[c + 2];
      y[r * columns + c] = row[c] + rate * ((16.0f * near - far - 60.0f * row[c]) / 12.0f);
    }
    step(columns - 2);
    step(columns - 1);
  }
}

// In squares, so that what one row brings into the nearest cache is still there for the next.
EXPORT void transpose(long rows, long columns, const float *x, float *y) {
  const long tile = 32;
#pragma omp parallel for collapse(2)
  for (long top = 0; top < rows; top += tile)
    for (long left = 0; left < columns; left += tile)
      for (long c = left; c < std::min(left + tile, columns); ++c)
        for (long r = top; r < std::min(top + tile, rows); ++r)
          y[c * rows + r] = x[r * columns + c];
}

EXPORT void mandelbrot(int *counts, long width, long height, float left, float top, float step, long most) {
#pragma omp parallel for schedule(dynamic)
  for (long row = 0; row < height; ++row)
    for (long column = 0; column < width; ++column) {
      const float cx = left + column * step, cy = top + row * step;
      float x = 0.0f, y = 0.0f;
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
}

// A radix sort by four bits, eight times: each core counts its part of the keys, and then writes it.
EXPORT void radix_sort(long n, const uint32_t *keys, uint32_t *first, uint32_t *second) {
  std::vector<uint32_t> places(size_t(16) * omp_get_max_threads());
  for (int pass = 0; pass < 8; ++pass) {
    const uint32_t *from = pass == 0 ? keys : pass % 2 ? first : second;
    uint32_t *to = pass % 2 ? second : first;
#pragma omp parallel
    {
      const long part = omp_get_thread_num(), parts = omp_get_num_threads();
      const long begin = n * part / parts, end = n * (part + 1) / parts;
      uint32_t own[16] = {};
      for (long i = begin; i < end; ++i)
        ++own[from[i] >> 4 * pass & 15];
      for (int digit = 0; digit < 16; ++digit)
        places[digit * parts + part] = own[digit];
#pragma omp barrier
#pragma omp single
      {
        uint32_t sum = 0;
        for (long i = 0; i < 16 * parts; ++i) {
          const uint32_t count = places[i];
          places[i] = sum;
          sum += count;
        }
      }
      for (int digit = 0; digit < 16; ++digit)
        own[digit] = places[digit * parts + part];
      for (long i = begin; i < end; ++i)
        to[own[from[i] >> 4 * pass & 15]++] = from[i];
    }
  }
}

// Attention for each query by itself: all scores, their softmax, and the weighted sum of the values.
EXPORT void attention(long heads, long length, long depth, long causal, const float *q, const float *k, const float *v,
                      float *out) {
  const float scale = 1.0f / sqrtf(float(depth));
#pragma omp parallel
  {
    std::vector<float> scores(length);
#pragma omp for collapse(2) schedule(dynamic, 16)
    for (long head = 0; head < heads; ++head)
      for (long row = 0; row < length; ++row) {
        const long first = head * length * depth;
        const float *query = q + first + row * depth;
        float *result = out + first + row * depth, largest = -INFINITY, total = 0.0f;
        const long visible = causal ? row + 1 : length;
        for (long j = 0; j < visible; ++j) {
          const float *key = k + first + j * depth;
          float score = 0.0f;
#pragma omp simd reduction(+ : score)
          for (long i = 0; i < depth; ++i)
            score += query[i] * key[i];
          scores[j] = score * scale;
          largest = std::max(largest, scores[j]);
        }
        std::fill(result, result + depth, 0.0f);
        for (long j = 0; j < visible; ++j) {
          const float *value = v + first + j * depth;
          const float weight = expf(scores[j] - largest);
          total += weight;
          for (long i = 0; i < depth; ++i)
            result[i] += weight * value[i];
        }
        for (long i = 0; i < depth; ++i)
          result[i] /= total;
      }
  }
}
