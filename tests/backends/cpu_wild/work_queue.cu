// Style: persistent threads. As many blocks as the machine holds; each warp takes tasks until there are none left, and
// tasks make further tasks: a function is integrated, and intervals where it is not yet smooth enough are split.
struct Interval {
    double from, to;
};

struct Queue {
    Interval* items;
    unsigned int* head;     // next to take
    unsigned int* tail;     // next free slot
    unsigned int* ready;    // one flag for each slot
    unsigned int* pending;  // tasks not yet finished
};

__device__ double f(double x) { return sin(1.0 / (x * x + 0.01)) * exp(-x); }

__device__ double simpson(double a, double b)
{
    return (b - a) / 6.0 * (f(a) + 4.0 * f(0.5 * (a + b)) + f(b));
}

__device__ void push(const Queue& q, Interval task)
{
    atomicAdd(q.pending, 1u);
    const unsigned int slot = atomicAdd(q.tail, 1u);
    q.items[slot] = task;
    __threadfence();
    atomicExch(&q.ready[slot], 1u);
}

// Take a task, if there is one to be had now.
__device__ bool pop(const Queue& q, Interval& task)
{
    for (;;) {
        const unsigned int head = atomicAdd(q.head, 0u);
        if (head >= atomicAdd(q.tail, 0u) || atomicAdd(&q.ready[head], 0u) == 0) return false;
        if (atomicCAS(q.head, head, head + 1) == head) {
            __threadfence();
            task = q.items[head];
            return true;
        }
    }
}

extern "C" __global__ void integrate(Queue q, double tolerance, double* result, unsigned int* taken)
{
    double sum = 0.0;
    while (atomicAdd(q.pending, 0u) > 0) {
        Interval task;
        if (!pop(q, task)) {
            __nanosleep(64);
            continue;
        }
        atomicAdd(&taken[blockIdx.x], 1u);
        const double middle = 0.5 * (task.from + task.to);
        const double whole = simpson(task.from, task.to);
        const double halves = simpson(task.from, middle) + simpson(middle, task.to);
        if (fabs(whole - halves) < tolerance * (task.to - task.from)) {
            sum += halves;
        } else {
            push(q, {task.from, middle});
            push(q, {middle, task.to});
        }
        __threadfence();
        atomicSub(q.pending, 1u);
    }
    atomicAdd(result, sum);
}
