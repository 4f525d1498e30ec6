// Launches from several threads at once: on the host's own order, in shared and in own streams, with barriers, with
// failures, and cooperative ones. test_cpu_races.py builds it with the sanitizers.
#include <stdio.h>

#include <initializer_list>
#include <thread>
#include <vector>

extern "C" {
int podium_cpu_wait(uint64_t stream, int every, uint32_t milliseconds);
void podium_cpu_configure(uint32_t threads);
void *podium_cpu_create_event();
void podium_cpu_destroy_event(void *event);
int podium_cpu_place_event(void *event, uint64_t stream, int waits);
int podium_cpu_wait_for_event(void *event, uint32_t milliseconds);
uint64_t podium_cpu_event_time(void *event);
}

__global__ void scale(float *x, float a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 20; ++k) x[i] = x[i] * a + 1;
}

__global__ void reverse(int *data) {
  __shared__ int tile[64];
  int *mine = data + blockIdx.x * 64;
  tile[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = tile[63 - threadIdx.x] + __shfl_xor_sync(~0u, 0, 1);
}

__global__ void count(unsigned *counter) { atomicAdd(counter, 1u); }

__global__ void fail() {
  if (blockIdx.x == 77) __trap();
}

__global__ void meet(int *arrived, int all) {
  atomicAdd(arrived, 1);
  podium_cpu::grid_barrier("sync()", __FILE__, __LINE__);
  if (atomicAdd(arrived, 0) != all) __trap();
}

template <class Kernel, Kernel kernel>
static int launch(unsigned grid, unsigned block, uint64_t stream, bool cooperative, std::initializer_list<void *> values) {
  const podium_cpu_launch shape = {{grid, 1, 1}, {block, 1, 1}, 0, stream, cooperative};
  return podium_cpu::podium_entry<Kernel, kernel>::podium_run(&shape, values.begin());
}
#define LAUNCH(kernel, ...) launch<decltype(&kernel), &kernel>(__VA_ARGS__)

static int wait(uint64_t stream, bool every) {
  int status;
  while ((status = podium_cpu_wait(stream, every, 50)) == PODIUM_CPU_NOT_READY) {
  }
  return status;
}

static int wait_for(void *event) {
  int status;
  while ((status = podium_cpu_wait_for_event(event, 50)) == PODIUM_CPU_NOT_READY) {
  }
  return status;
}

// Hand numbers over from one stream to another and back; the event is recorded anew each time.
static int follow(unsigned thread, int *data) {
  const uint64_t first = 20 + thread, second = 30 + thread;
  void *event = podium_cpu_create_event();
  int wrong = 0;
  for (int turn = 0; turn < 4; ++turn) {
    const uint64_t here = turn % 2 ? second : first, there = turn % 2 ? first : second;
    wrong += LAUNCH(reverse, 200, 64, here, false, {&data}) != PODIUM_CPU_SUCCESS;
    wrong += podium_cpu_place_event(event, here, 0) != PODIUM_CPU_SUCCESS;
    wrong += podium_cpu_place_event(event, there, 1) != PODIUM_CPU_SUCCESS;
  }
  wrong += wait_for(event) != PODIUM_CPU_SUCCESS || podium_cpu_event_time(event) == 0;
  wrong += podium_cpu_place_event(event, first, 0) != PODIUM_CPU_SUCCESS;
  podium_cpu_destroy_event(event);
  return wrong + (wait(first, false) != PODIUM_CPU_SUCCESS) + (wait(second, false) != PODIUM_CPU_SUCCESS);
}

static int work(unsigned thread, unsigned *counter) {
  int wrong = 0, all = 8 * 32;
  std::vector<float> x(64 * 200, 1.0f);
  std::vector<int> numbers(64 * 200);
  float *values = x.data(), factor = 0.5f;
  int *data = numbers.data();
  for (int i = 0; i < 64 * 200; ++i) numbers[i] = i;
  for (int turn = 0; turn < 2; ++turn) {
    wrong += LAUNCH(scale, 200, 64, 0, false, {&values, &factor}) != PODIUM_CPU_SUCCESS;
    wrong += LAUNCH(reverse, 200, 64, 0, false, {&data}) != PODIUM_CPU_SUCCESS;
    wrong += LAUNCH(count, 200, 8, 1 + thread % 2, false, {&counter}) != PODIUM_CPU_SUCCESS;
    wrong += LAUNCH(scale, 200, 64, 10 + thread, false, {&values, &factor}) != PODIUM_CPU_SUCCESS;
    wrong += LAUNCH(reverse, 200, 64, 10 + thread, false, {&data}) != PODIUM_CPU_SUCCESS;
    wrong += wait(10 + thread, false) != PODIUM_CPU_SUCCESS;
    wrong += follow(thread, data);
    wrong += LAUNCH(fail, 500, 1, 0, false, {}) != PODIUM_CPU_ERROR_TRAP;
    int arrived = 0, *meeting = &arrived;
    wrong += LAUNCH(meet, 8, 32, 0, true, {&meeting, &all}) != PODIUM_CPU_SUCCESS;
  }
  for (int i = 0; i < 64 * 200; ++i) wrong += numbers[i] != i;
  for (float each : x) wrong += each < 1.9f || each > 2.1f;
  return wrong;
}

int main() {
  podium_cpu_configure(4);
  std::vector<std::thread> threads;
  int wrong[3] = {};
  unsigned counted = 0;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back([&, i] { wrong[i] = work(i, &counted); });
  for (auto &each : threads) each.join();
  wrong[0] += wait(0, true);
  printf("%d wrong, %u counted\n", wrong[0] + wrong[1] + wrong[2], counted);
}
