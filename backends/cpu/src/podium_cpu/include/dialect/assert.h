// The system's header, with the assert of the dialect: it ends the launch and not the process. As in the system's, each
// inclusion looks at NDEBUG anew.
#include_next <assert.h>

#undef assert
#ifdef NDEBUG
#define assert(...) static_cast<void>(0)
#else
#define assert(...) \
  ((__VA_ARGS__) ? static_cast<void>(0) : podium_cpu::fail_assertion(#__VA_ARGS__, __FILE__, __LINE__, __func__))
#endif
