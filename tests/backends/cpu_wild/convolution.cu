// Style: image processing. A 3-D convolution with weights in constant memory; a block walks along z and keeps three
// planes in shared memory, which it turns round by their numbers.
#define R 1
#define TX 8
#define TY 4
#define PLANES (2 * R + 1)

__constant__ float weights[PLANES][PLANES][PLANES] = {
    {{0.f, 1.f, 0.f}, {1.f, 2.f, 1.f}, {0.f, 1.f, 0.f}},
    {{1.f, 2.f, 1.f}, {2.f, -24.f, 2.5f}, {1.f, 2.f, 1.f}},
    {{0.f, 1.f, 0.f}, {1.f, 2.f, 1.f}, {0.f, 1.f, .5f}},
};
__constant__ int border_mode = 1;

typedef float Plane[TY + 2 * R][TX + 2 * R];

static __device__ int clamped(int i, int n) { return border_mode ? max(0, min(i, n - 1)) : i; }

static __device__ void load(Plane& plane, const float* in, int z, int3 size)
{
    for (int y = threadIdx.y; y < TY + 2 * R; y += TY)
        for (int x = threadIdx.x; x < TX + 2 * R; x += TX) {
            const int gx = clamped((int)(blockIdx.x * TX) + x - R, size.x);
            const int gy = clamped((int)(blockIdx.y * TY) + y - R, size.y);
            const int gz = clamped(z, size.z);
            plane[y][x] = in[((size_t)gz * size.y + gy) * size.x + gx];
        }
}

extern "C" __global__ void __launch_bounds__(TX * TY, 2)
convolve(const float* __restrict__ in, float* __restrict__ out, int3 size)
{
    __shared__ Plane planes[PLANES];
    const int x = blockIdx.x * TX + threadIdx.x, y = blockIdx.y * TY + threadIdx.y;
    const bool inside = x < size.x && y < size.y;

    for (int z = -R; z < R; ++z) load(planes[(z + PLANES) % PLANES], in, z, size);
    for (int z = 0; z < size.z; ++z) {
        load(planes[(z + R) % PLANES], in, z + R, size);
        __syncthreads();
        if (inside) {
            float sum = 0.f;
#pragma unroll
            for (int dz = -R; dz <= R; ++dz) {
                const Plane& plane = planes[(z + dz + PLANES) % PLANES];
#pragma unroll
                for (int dy = -R; dy <= R; ++dy)
#pragma unroll
                    for (int dx = -R; dx <= R; ++dx)
                        sum = __fmaf_rn(weights[dz + R][dy + R][dx + R], plane[threadIdx.y + R + dy][threadIdx.x + R + dx], sum);
            }
            out[((size_t)z * size.y + y) * size.x + x] = sum;
        }
        __syncthreads();
    }
}
