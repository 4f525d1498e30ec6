/*
 * hipRTC, by way of a real one, of which the variable RECORDING_HIPRTC has the file: HIP 5 has it inside libamdhip64, 6
 * there and in a library of its own, 7 only in that. Without a real one no program can be made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#ifdef RECORDING_HIP_HEADERS
#define __HIP_PLATFORM_AMD__
#include <hip/hiprtc.h>
#else
typedef enum hiprtcResult { HIPRTC_SUCCESS = 0, HIPRTC_ERROR_INTERNAL_ERROR = 11 } hiprtcResult;
typedef struct _hiprtcProgram *hiprtcProgram;
#endif

/* Arrays of texts became const in HIP 7. */
#if RECORDING_HIP_MAJOR >= 7
typedef const char *const *texts;
#else
typedef const char **texts;
#endif

/* Opened when it is first needed: it may be a runtime too, and a process that only launches has one of those. */
static void *find(const char *name) {
    static void *library;
    const char *file = getenv("RECORDING_HIPRTC");
    if (!library && file && *file) library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    return library ? dlsym(library, name) : NULL;
}

#define FORWARD(name, types, values)                                                                                   \
    hiprtcResult name types;                                                                                           \
    hiprtcResult name types {                                                                                          \
        hiprtcResult(*function) types = (hiprtcResult(*) types)find(#name);                                            \
        return function ? function values : HIPRTC_ERROR_INTERNAL_ERROR;                                               \
    }

FORWARD(hiprtcVersion, (int *major, int *minor), (major, minor))
FORWARD(hiprtcCreateProgram,
        (hiprtcProgram *out, const char *source, const char *name, int count, texts headers, texts names),
        (out, source, name, count, headers, names))
FORWARD(hiprtcDestroyProgram, (hiprtcProgram *program), (program))
FORWARD(hiprtcAddNameExpression, (hiprtcProgram program, const char *expression), (program, expression))
FORWARD(hiprtcCompileProgram, (hiprtcProgram program, int count, texts options), (program, count, options))
FORWARD(hiprtcGetLoweredName, (hiprtcProgram program, const char *expression, const char **name),
        (program, expression, name))
FORWARD(hiprtcGetProgramLogSize, (hiprtcProgram program, size_t *size), (program, size))
FORWARD(hiprtcGetProgramLog, (hiprtcProgram program, char *log), (program, log))
FORWARD(hiprtcGetCodeSize, (hiprtcProgram program, size_t *size), (program, size))
FORWARD(hiprtcGetCode, (hiprtcProgram program, char *code), (program, code))

const char *hiprtcGetErrorString(hiprtcResult status);
const char *hiprtcGetErrorString(hiprtcResult status) {
    const char *(*function)(hiprtcResult) = (const char *(*)(hiprtcResult))find("hiprtcGetErrorString");
    return function ? function(status) : status ? "HIPRTC_ERROR_INTERNAL_ERROR" : "HIPRTC_SUCCESS";
}
