// C = A * B for row-major matrices of any size: A is m x k, B is k x n.
// Each block computes one tile of C, and walks along k with a tile of A and a tile of B in shared memory.
#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                  int m, int n, int k)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];

    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;

    for (int start = 0; start < k; start += TILE) {
        const int along = start + threadIdx.x;
        const int down = start + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < m && along < k ? A[row * k + along] : 0.0f;
        b[threadIdx.y][threadIdx.x] = down < k && column < n ? B[down * n + column] : 0.0f;
        __syncthreads();

        for (int i = 0; i < TILE; ++i)
            sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }

    if (row < m && column < n)
        C[row * n + column] = sum;
}
