// libstdc++ writes __noinline__ inside an attribute here, and the dialect makes that word an attribute itself.
#pragma push_macro("__noinline__")
#undef __noinline__
#include_next <bits/shared_ptr_base.h>
#pragma pop_macro("__noinline__")
