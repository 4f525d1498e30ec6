// Style: dynamic programming. The score of the best local alignment of two texts (Smith-Waterman, affine gaps), a block
// for each pair, along diagonals: how many threads are at work changes with every step, and three rows turn round.
struct Scoring {
    signed char match, mismatch, open, extend;
};

#define MOST 128

extern "C" __global__ void align(const char* __restrict__ left, const char* __restrict__ right, const int* offsets_left,
                                 const int* offsets_right, Scoring scoring, int* __restrict__ best)
{
    __shared__ int H[3][MOST + 1], E[2][MOST + 1], F[2][MOST + 1];
    __shared__ char row_text[MOST];
    const int t = threadIdx.x;
    const char* a = left + offsets_left[blockIdx.x];
    const char* b = right + offsets_right[blockIdx.x];
    const int m = offsets_left[blockIdx.x + 1] - offsets_left[blockIdx.x];
    const int n = offsets_right[blockIdx.x + 1] - offsets_right[blockIdx.x];

    for (int i = t; i <= MOST; i += blockDim.x) {
        H[0][i] = H[1][i] = H[2][i] = 0;
        E[0][i] = E[1][i] = F[0][i] = F[1][i] = -1000000;
        if (i < m) row_text[i] = a[i];
    }
    __shared__ int most;
    if (t == 0) most = 0;
    __syncthreads();

    int mine = 0;
    for (int diagonal = 0; diagonal < m + n - 1; ++diagonal) {
        int(&now)[MOST + 1] = H[diagonal % 3];
        int(&before)[MOST + 1] = H[(diagonal + 2) % 3];
        int(&earlier)[MOST + 1] = H[(diagonal + 1) % 3];
        const int e = diagonal & 1;
        const int low = max(0, diagonal - n + 1), high = min(m - 1, diagonal);
        for (int i = low + t; i <= high; i += blockDim.x) {
            const int j = diagonal - i;
            // row i is at i + 1; what lies to the left is on the diagonal before in the same row
            const int from_left = j > 0 ? before[i + 1] : 0, from_above = i > 0 ? before[i] : 0;
            const int across = i > 0 && j > 0 ? earlier[i] : 0;
            const int gap_left = j > 0 ? max(E[e ^ 1][i + 1] - scoring.extend, from_left - scoring.open) : -scoring.open;
            const int gap_above = i > 0 ? max(F[e ^ 1][i] - scoring.extend, from_above - scoring.open) : -scoring.open;
            const int same = across + (row_text[i] == b[j] ? scoring.match : scoring.mismatch);
            const int score = max(max(0, same), max(gap_left, gap_above));
            E[e][i + 1] = gap_left;
            F[e][i + 1] = gap_above;
            now[i + 1] = score;
            mine = max(mine, score);
        }
        __syncthreads();
    }
    atomicMax(&most, mine);
    __syncthreads();
    if (t == 0) best[blockIdx.x] = most;
}
