/* Reading PTX: versions, entries and their parameters, and variables, by a scan of the text. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%'; }

static const char *skip_space(const char *at) {
    while (*at && isspace((unsigned char)*at)) at++;
    return at;
}

/* Takes comments out, so that the scan meets code only. */
static void blank_comments(char *text) {
    for (char *at = text; *at; at++) {
        if (at[0] == '/' && at[1] == '/') {
            while (*at && *at != '\n') *at++ = ' ';
            if (!*at) return;
        } else if (at[0] == '/' && at[1] == '*') {
            while (*at && !(at[0] == '*' && at[1] == '/')) *at++ = ' ';
            if (!*at) return;
            at[0] = at[1] = ' ';
        }
    }
}

/* Bytes of a type such as .u64, at its dot; 0 if it is none. */
static uint32_t type_size(const char *at) {
    if (!strncmp(at, ".pred", 5)) return 1;
    if (!at[0] || !strchr("usfb", at[1])) return 0;
    return (uint32_t)(atoi(at + 2) / 8);
}

struct declaration { uint32_t alignment, size; const char *name; size_t length; };

/* Reads "[.align 8] .b8 name[24]" up to one of the characters of `ends`, and gives that place. */
static const char *read_declaration(const char *at, const char *ends, struct declaration *out) {
    uint32_t element = 0, count = 1;
    memset(out, 0, sizeof *out);
    while (*at && !strchr(ends, *at)) {
        if (!strncmp(at, ".align", 6)) {
            out->alignment = (uint32_t)strtoul(at + 6, (char **)&at, 10);
        } else if (*at == '.') {
            uint32_t size = type_size(at);
            if (size) element = size;
            for (at++; is_name(*at) || *at == '(' || *at == ')'; at++) {} /* .ptr, .global, .attribute(.managed) */
        } else if (is_name(*at)) {
            const char *begin = at;
            while (is_name(*at)) at++;
            if (!isdigit((unsigned char)*begin)) {
                out->name = begin;
                out->length = (size_t)(at - begin);
            }
        } else if (*at == '[') {
            count = (uint32_t)strtoul(at + 1, (char **)&at, 10);
        } else {
            at++;
        }
    }
    out->size = element * count;
    if (!out->alignment) out->alignment = element ? element : 1;
    return at;
}

static const char *read_entry(struct image *image, const char *at) {
    const char *name = at = skip_space(at);
    while (is_name(*at)) at++;
    struct kernel_info *kernel = image_add_kernel(image, name, (size_t)(at - name));
    kernel->registers = 16; /* what the compiler in the driver would choose is not known */
    at = skip_space(at);
    uint32_t offset = 0, ordinal = 0;
    if (*at == '(') {
        while (*at && *at != ')') {
            struct declaration parameter;
            at = read_declaration(at + 1, ",)", &parameter);
            if (!parameter.size) continue;
            offset = (offset + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
            kernel_add_parameter(kernel, ordinal++, offset, parameter.size);
            offset += parameter.size;
        }
    }
    for (; *at && *at != '{' && *at != ';'; at++) {
        bool maximum = !strncmp(at, ".maxntid", 8), required = !strncmp(at, ".reqntid", 8);
        bool cluster = !strncmp(at, ".reqnctapercluster", 18);
        if (!maximum && !required && !cluster) continue;
        uint32_t value[3] = {1, 1, 1};
        at += cluster ? 18 : 8;
        for (int i = 0; i < 3; i++) {
            value[i] = (uint32_t)strtoul(at, (char **)&at, 10);
            if (*skip_space(at) != ',') break;
            at = skip_space(at) + 1;
        }
        if (cluster) memcpy(kernel->cluster, value, sizeof value);
        if (cluster) kernel->cluster_must_be_set = true;
        else kernel->max_threads = (int)(value[0] * value[1] * value[2]);
        at--;
    }
    if (*at != '{') return at;
    for (int depth = 0; *at; at++) {
        if (*at == '{') depth++;
        if (*at == '}' && --depth == 0) break;
        if (!strncmp(at, ".shared", 7) && isspace((unsigned char)at[7])) { /* a variable, not part of an instruction */
            struct declaration variable;
            at = read_declaration(at + 7, ";={}", &variable) - 1;
            kernel->shared = (kernel->shared + (int)variable.alignment - 1) / (int)variable.alignment *
                                 (int)variable.alignment + (int)variable.size;
        }
    }
    return at;
}

CUresult ptx_read(struct image *image) {
    char *text = (char *)image->bytes;
    blank_comments(text);
    const char *version = strstr(text, ".version"), *target = strstr(text, ".target");
    REQUIRE(version && target, CUDA_ERROR_INVALID_PTX);
    char *minor;
    image->ptx_version = (int)strtoul(version + 8, &minor, 10) * 10;
    if (*minor == '.') image->ptx_version += (int)strtoul(minor + 1, NULL, 10);
    const char *arch = strstr(target, "sm_");
    REQUIRE(arch, CUDA_ERROR_INVALID_PTX);
    char *suffix;
    image->arch = (int)strtoul(arch + 3, &suffix, 10);
    image->exact = *suffix == 'a';
    image->family = *suffix == 'f';
    int depth = 0;
    for (const char *at = target; *at; at++) {
        if (*at == '{') depth++;
        if (*at == '}') depth--;
        if (depth < 0) return CUDA_ERROR_INVALID_PTX;
        if (depth || *at != '.') continue;
        bool global = !strncmp(at, ".global", 7), constant = !strncmp(at, ".const", 6);
        if (!strncmp(at, ".entry", 6)) {
            at = read_entry(image, at + 6);
            if (!*at) return CUDA_ERROR_INVALID_PTX;
        } else if ((global || constant) && isspace((unsigned char)at[global ? 7 : 6])) {
            struct declaration declaration;
            const char *end = read_declaration(at + 6 + global, ";=", &declaration);
            if (declaration.size) {
                struct variable_info *variable = image_add_variable(image, declaration.name, declaration.length);
                variable->size = declaration.size;
                variable->constant = constant;
                char managed[] = ".managed";
                const char *found = strstr(at, managed);
                variable->managed = found && found < end;
            }
            at = end + strcspn(end, ";");
            if (!*at) return CUDA_ERROR_INVALID_PTX;
        }
    }
    return depth ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}
