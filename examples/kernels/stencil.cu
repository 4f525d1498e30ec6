// One step of the heat equation on a grid, with differences of fourth order: each point sees two neighbours on each
// side, along both axes. What lies outside is zero.
// A block of WIDTH x HEIGHT threads loads its points and a halo of RADIUS around them into shared memory.
static constexpr int RADIUS = 2;

template <int WIDTH, int HEIGHT>
__global__ void heat_step(const float* __restrict__ in, float* __restrict__ out, int rows, int columns, float rate)
{
    __shared__ float tile[HEIGHT + 2 * RADIUS][WIDTH + 2 * RADIUS];
    const int left = blockIdx.x * WIDTH - RADIUS;
    const int top = blockIdx.y * HEIGHT - RADIUS;

    for (int y = threadIdx.y; y < HEIGHT + 2 * RADIUS; y += HEIGHT)
        for (int x = threadIdx.x; x < WIDTH + 2 * RADIUS; x += WIDTH) {
            const int row = top + y, column = left + x;
            const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
            tile[y][x] = inside ? in[row * columns + column] : 0.0f;
        }
    __syncthreads();

    const int column = blockIdx.x * WIDTH + threadIdx.x;
    const int row = blockIdx.y * HEIGHT + threadIdx.y;
    if (row >= rows || column >= columns)
        return;

    const int x = threadIdx.x + RADIUS, y = threadIdx.y + RADIUS;
    const float centre = tile[y][x];
    const float near = tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];
    const float far = tile[y - 2][x] + tile[y + 2][x] + tile[y][x - 2] + tile[y][x + 2];
    const float laplacian = (16.0f * near - far - 60.0f * centre) / 12.0f;
    out[row * columns + column] = centre + rate * laplacian;
}
