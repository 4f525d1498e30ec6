// The transpose of a row-major matrix, by way of shared memory, so that both reading and writing go along rows.
// The tile has one column more than it needs: the elements of a column then lie in different banks.
// Blocks are TILE x ROWS threads, and each thread moves TILE / ROWS elements.
template <typename T, int TILE, int ROWS>
__global__ void transpose(const T* __restrict__ in, T* __restrict__ out, int rows, int columns)
{
    static_assert(TILE % ROWS == 0, "a block covers its tile in whole steps");
    __shared__ T tile[TILE][TILE + 1];

    int column = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int step = 0; step < TILE; step += ROWS)
        if (row + step < rows && column < columns)
            tile[threadIdx.y + step][threadIdx.x] = in[static_cast<size_t>(row + step) * columns + column];
    __syncthreads();

    column = blockIdx.y * TILE + threadIdx.x;  // of the result, whose rows are the columns of the input
    row = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int step = 0; step < TILE; step += ROWS)
        if (row + step < columns && column < rows)
            out[static_cast<size_t>(row + step) * rows + column] = tile[threadIdx.x][threadIdx.y + step];
}
