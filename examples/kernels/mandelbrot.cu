// For each point of a rectangle of the complex plane: how many steps of z -> z * z + c, from 0, stay within |z| <= 2.
// `left` and `top` are the coordinates of the first point, `step` is the distance between neighbours.
template <typename T>
__global__ void mandelbrot(int* __restrict__ counts, int width, int height, T left, T top, T step, int most)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;

    const T cx = left + column * step;
    const T cy = top + row * step;
    T x = 0, y = 0;
    int count = 0;
    while (count < most) {
        const T xx = x * x, yy = y * y;
        if (xx + yy > T(4))
            break;
        y = T(2) * x * y + cy;
        x = xx - yy + cx;
        ++count;
    }
    counts[row * width + column] = count;
}
