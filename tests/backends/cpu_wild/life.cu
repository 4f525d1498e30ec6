// Style: bits. Conway's game of life with 32 cells in a word, several generations in one launch: a warp reads a word's
// cells as lanes, and a ballot packs them again; and the same by adding up whole words, a bit for each cell.
typedef unsigned int Row;

__device__ bool alive(const Row* board, int words, int rows, int row, int column)
{
    row = (row + rows) % rows;
    column = (column + 32 * words) % (32 * words);
    return board[row * words + (column >> 5)] >> (column & 31) & 1;
}

extern "C" __global__ void by_ballot(const Row* in, Row* out, int words, int rows)
{
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (warp >= words * rows) return;
    const int row = warp / words, column = warp % words * 32 + lane;
    int neighbours = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx | dy) neighbours += alive(in, words, rows, row + dy, column + dx);
    const unsigned int next = __ballot_sync(0xffffffff, neighbours == 3 || (neighbours == 2 && alive(in, words, rows, row, column)));
    if (lane == 0) out[warp] = next;
}

__device__ void add(Row bit, Row& ones, Row& twos, Row& fours)
{
    const Row carry = ones & bit;
    ones ^= bit;
    fours |= twos & carry;
    twos ^= carry;
}

// The whole board lies in shared memory; a thread has one word.
extern "C" __global__ void by_words(Row* board, int words, int rows, int generations)
{
    extern __shared__ Row cells[];
    const int x = threadIdx.x, y = threadIdx.y, here = y * words + x;
    cells[here] = board[here];
    while (generations-- > 0) {
        __syncthreads();
        Row ones = 0, twos = 0, fours = 0, mine = 0;
        for (int dy = -1; dy <= 1; ++dy) {
            const Row* row = cells + (y + dy + rows) % rows * words;
            const Row west = row[(x + words - 1) % words], centre = row[x], east = row[(x + 1) % words];
            add(__funnelshift_l(west, centre, 1), ones, twos, fours);
            add(__funnelshift_r(centre, east, 1), ones, twos, fours);
            if (dy)
                add(centre, ones, twos, fours);
            else
                mine = centre;
        }
        __syncthreads();
        cells[here] = twos & ~fours & (ones | mine);
    }
    board[here] = cells[here];
}
