// Style: text processing in C. Where a pattern with ? and * begins to match, by a hand-written matcher with goto; and
// words counted by a state machine with a switch that falls through.
static __device__ int length_of(const char* s)
{
    const char* p = s;
    while (*p) ++p;
    return p - s;
}

static __device__ bool matches(const char* text, const char* end, const char* pattern)
{
    const char *star = nullptr, *back = nullptr;
next:
    if (*pattern == '\0') return true;
    if (*pattern == '*') {
        star = pattern++;
        back = text;
        goto next;
    }
    if (text < end && (*pattern == '?' || *pattern == *text)) {
        ++pattern, ++text;
        goto next;
    }
    if (star && back < end && back - text < 64) {
        pattern = star + 1;
        text = ++back;
        goto next;
    }
    return false;
}

extern "C" __global__ void find(const char* __restrict__ text, int n, const char* __restrict__ patterns,
                                unsigned char* __restrict__ found)
{
    // patterns lie one behind the other, each with its terminator; blockIdx.y says which
    const char* pattern = patterns;
    for (unsigned int p = 0; p < blockIdx.y; ++p) pattern += length_of(pattern) + 1;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        found[(size_t)blockIdx.y * n + i] = matches(text + i, text + n, pattern);
}

enum State : unsigned char { OUTSIDE, WORD, NUMBER };

// Each thread looks at the words that begin in its 16 characters, which it loads as four words of 32 bits.
extern "C" __global__ void words(const char* __restrict__ text, int n, int* counts /* words, numbers, bytes >= 128 */)
{
    __shared__ int totals[3];
    if (threadIdx.x < 3) totals[threadIdx.x] = 0;
    __syncthreads();

    const int start = (blockIdx.x * blockDim.x + threadIdx.x) * 16;
    State state = OUTSIDE;
    if (start > 0 && start < n) {
        const char before = text[start - 1];
        state = before == ' ' || before == '\n' ? OUTSIDE : WORD;
    }
    for (int part = 0; part < 4 && start + 4 * part < n; ++part) {
        union {
            unsigned int all;
            char each[4];
        } bytes;
        if (start + 4 * part + 4 <= n)
            bytes.all = *reinterpret_cast<const unsigned int*>(text + start + 4 * part);
        else
            for (int k = 0; k < 4; ++k) bytes.each[k] = start + 4 * part + k < n ? text[start + 4 * part + k] : ' ';

        for (int k = 0; k < 4; ++k) {
            const char c = bytes.each[k];
            if (c < 0) atomicAdd(&totals[2], 1);
            switch (c) {
            case ' ':
            case '\n':
                state = OUTSIDE;
                break;
            case '0': case '1': case '2': case '3': case '4':
            case '5': case '6': case '7': case '8': case '9':
                if (state == OUTSIDE) {
                    state = NUMBER;
                    atomicAdd(&totals[1], 1);
                    break;
                }
                // fall through
            default:
                if (state == OUTSIDE) {
                    state = WORD;
                    atomicAdd(&totals[0], 1);
                }
            }
        }
    }
    __syncthreads();
    if (threadIdx.x < 3) atomicAdd(&counts[threadIdx.x], totals[threadIdx.x]);
}
