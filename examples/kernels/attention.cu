// Attention, softmax(Q * K^T / sqrt(DEPTH)) * V, without ever having the matrix in the middle: each block keeps ROWS
// queries, one for each thread, and walks over tiles of COLUMNS keys and values in shared memory. Largest score, sum of
// exponentials and the weighted sum of the values are carried along, and scaled down where a larger score turns up.
// Q, K, V and the result are [heads, length, DEPTH]. With CAUSAL, a query sees the keys up to its own position.
// The grid is (queries / ROWS, heads), rounded up; the block has ROWS threads.

// NVRTC has no <math.h>, and so no INFINITY.
__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

template <int DEPTH, int ROWS, int COLUMNS, bool CAUSAL>
__global__ void __launch_bounds__(ROWS)
    attention(const float* __restrict__ Q, const float* __restrict__ K, const float* __restrict__ V,
              float* __restrict__ out, int length)
{
    static_assert(DEPTH % 4 == 0, "rows are read four elements at a time");
    constexpr int VECTORS = DEPTH / 4;
    __shared__ float4 keys[COLUMNS][VECTORS];
    __shared__ float4 values[COLUMNS][VECTORS];

    const int row = blockIdx.x * ROWS + threadIdx.x;
    const size_t head = static_cast<size_t>(blockIdx.y) * length * VECTORS;
    const float4* const Q4 = reinterpret_cast<const float4*>(Q) + head;
    const float4* const K4 = reinterpret_cast<const float4*>(K) + head;
    const float4* const V4 = reinterpret_cast<const float4*>(V) + head;
    const float scale = rsqrtf(static_cast<float>(DEPTH));

    float4 query[VECTORS];
    float4 sums[VECTORS];
    for (int i = 0; i < VECTORS; ++i) {
        query[i] = row < length ? Q4[static_cast<size_t>(row) * VECTORS + i] : make_float4(0, 0, 0, 0);
        sums[i] = make_float4(0, 0, 0, 0);
    }
    float largest = minus_infinity();
    float total = 0.0f;

    const int last = CAUSAL ? min(length, (static_cast<int>(blockIdx.x) + 1) * ROWS) : length;
    for (int start = 0; start < last; start += COLUMNS) {
        const int present = min(COLUMNS, length - start);
        for (int i = threadIdx.x; i < present * VECTORS; i += ROWS) {
            keys[i / VECTORS][i % VECTORS] = K4[static_cast<size_t>(start) * VECTORS + i];
            values[i / VECTORS][i % VECTORS] = V4[static_cast<size_t>(start) * VECTORS + i];
        }
        __syncthreads();

        const int visible = CAUSAL ? min(present, row - start + 1) : present;  // none, if not positive
        float scores[COLUMNS];
        float top = largest;
        for (int j = 0; j < visible; ++j) {
            float score = 0.0f;
#pragma unroll
            for (int i = 0; i < VECTORS; ++i)
                score += dot(query[i], keys[j][i]);
            scores[j] = score * scale;
            top = fmaxf(top, scores[j]);
        }

        if (visible > 0) {
            const float shrink = expf(largest - top);
            total *= shrink;
#pragma unroll
            for (int i = 0; i < VECTORS; ++i) {
                sums[i].x *= shrink;
                sums[i].y *= shrink;
                sums[i].z *= shrink;
                sums[i].w *= shrink;
            }
            largest = top;
        }
        for (int j = 0; j < visible; ++j) {
            const float weight = expf(scores[j] - largest);
            total += weight;
#pragma unroll
            for (int i = 0; i < VECTORS; ++i) {
                sums[i].x += weight * values[j][i].x;
                sums[i].y += weight * values[j][i].y;
                sums[i].z += weight * values[j][i].z;
                sums[i].w += weight * values[j][i].w;
            }
        }
        __syncthreads();  // before the tiles are filled again
    }

    if (row < length) {
        float4* const result = reinterpret_cast<float4*>(out) + head + static_cast<size_t>(row) * VECTORS;
        for (int i = 0; i < VECTORS; ++i)
            result[i] = make_float4(sums[i].x / total, sums[i].y / total, sums[i].z / total, sums[i].w / total);
    }
}
