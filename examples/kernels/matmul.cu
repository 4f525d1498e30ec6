// C = A * B for row-major matrices of any size: A is m x k, B is k x n.
// Each block computes one tile of C, and walks along k with a tile of A and a tile of B in shared memory.
// Blocks are TILE x TILE threads.
template <typename T, int TILE>
__global__ void matmul(const T* __restrict__ A, const T* __restrict__ B, T* __restrict__ C, int m, int n, int k)
{
    __shared__ T a[TILE][TILE];
    __shared__ T b[TILE][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;
    T sum = 0;

    for (int start = 0; start < k; start += TILE) {
        a[ty][tx] = row < m && start + tx < k ? A[row * k + start + tx] : T(0);
        b[ty][tx] = column < n && start + ty < k ? B[(start + ty) * n + column] : T(0);
        __syncthreads();

#pragma unroll
        for (int i = 0; i < TILE; ++i)
            sum += a[ty][i] * b[i][tx];
        __syncthreads();
    }

    if (row < m && column < n)
        C[row * n + column] = sum;
}
