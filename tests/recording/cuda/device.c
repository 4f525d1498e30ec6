/* Devices: by default two that answer as an H200 does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

struct device devices[MAX_DEVICES];
int device_count = 2;

#define LAST_ATTRIBUTE 147 /* larger numbers are not known to a driver of 13.0 */

static const struct { int number, value; } h200[] = {
    {1, 1024},        {2, 1024},       {3, 1024},       {4, 64},          {5, 2147483647},  {6, 65535},
    {7, 65535},       {8, 49152},      {9, 65536},      {10, 32},         {11, 2147483647}, {12, 65536},
    {13, 1980000},    {14, 512},       {15, 1},         {16, 132},        {17, 0},          {18, 0},
    {19, 1},          {20, 0},         {21, 131072},    {22, 131072},     {23, 65536},      {24, 16384},
    {25, 16384},      {26, 16384},     {27, 32768},     {28, 32768},      {29, 2048},       {30, 512},
    {31, 1},          {32, 1},         {34, 0},         {35, 0},          {36, 3201000},    {37, 6016},
    {38, 62914560},   {39, 2048},      {40, 3},         {41, 1},          {42, 32768},      {43, 2048},
    {44, 1},          {45, 32768},     {46, 32768},     {47, 8192},       {48, 8192},       {49, 32768},
    {50, 0},          {51, 32},        {52, 32768},     {53, 32768},      {54, 2046},       {55, 32768},
    {56, 131072},     {57, 65536},     {58, 16384},     {59, 16384},      {60, 16384},      {61, 32768},
    {62, 2048},       {63, 32768},     {64, 32768},     {65, 2048},       {66, 32768},      {67, 32768},
    {68, 2046},       {69, 268435456}, {70, 131072},    {71, 65000},      {72, 2097120},    {73, 32768},
    {74, 32768},      {75, 9},         {76, 0},         {77, 32768},      {78, 1},          {79, 1},
    {80, 1},          {81, 233472},    {82, 65536},     {83, 1},          {84, 0},          {86, 0},
    {87, 2},          {88, 0},         {89, 1},         {90, 1},          {91, 1},          {95, 1},
    {96, 1},          {97, 232448},    {98, 0},         {99, 1},          {100, 0},         {101, 0},
    {102, 1},         {103, 1},        {106, 32},       {107, 1},         {108, 39321600},  {109, 134217728},
    {110, 1},         {111, 1024},     {112, 1},        {113, 1},         {114, 1},         {115, 1},
    {116, 1},         {117, 1},        {118, 100},      {119, 9},         {120, 1},         {121, 1},
    {122, 1},         {123, 1},        {124, 1},        {125, 1},         {126, 4},         {127, 1},
    {128, 1},         {129, 1},        {130, 0},        {131, -1},        {132, 0},         {134, 0},
    {141, 1},         {142, 1},        {144, 1},        {145, 1},
};

static int setting(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

void device_reset(void) {
    /* The masks of CUDA_VISIBLE_DEVICES are the real driver's own business: here the variable gives the number. */
    device_count = setting("PODIUM_RECORDING_DEVICES", 2);
    if (device_count < 0 || device_count > MAX_DEVICES) device_count = MAX_DEVICES;
    int capability = setting("PODIUM_RECORDING_CAPABILITY", 90);
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct device *device = &devices[i];
        memset(device, 0, sizeof *device);
        for (size_t j = 0; j < sizeof h200 / sizeof *h200; j++) device->attribute[h200[j].number] = h200[j].value;
        device->attribute[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = i + 6;
        device->attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = capability / 10;
        device->attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = capability % 10;
        if (capability < 90) {
            device->attribute[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = 0;
            device->attribute[CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED] = 0;
        }
        snprintf(device->name, sizeof device->name, "Recording device %d", i);
        device->total = (size_t)150109880320;
        device->reachable = ~(UINT32_C(1) << i);
    }
}

bool device_valid(CUdevice device) { return device >= 0 && device < device_count; }

CUresult cuDeviceGetCount(int *count) {
    ENTER(cuDeviceGetCount);
    REQUIRE(count, CUDA_ERROR_INVALID_VALUE);
    *count = device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER(cuDeviceGet);
    REQUIRE(device, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_valid(ordinal), CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    ENTER(cuDeviceGetName);
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(name && length > 0, CUDA_ERROR_INVALID_VALUE);
    snprintf(name, (size_t)length, "%s", devices[device].name);
    return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice device) {
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    memset(out->bytes, device + 1, sizeof out->bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) {
    ENTER(cuDeviceGetUuid);
    return uuid(out, device);
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
    ENTER(cuDeviceGetUuid_v2);
    return uuid(out, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    ENTER(cuDeviceTotalMem_v2);
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(bytes, CUDA_ERROR_INVALID_VALUE);
    *bytes = devices[device].total;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    ENTER(cuDeviceGetAttribute);
    REQUIRE(value && attribute > 0 && attribute <= LAST_ATTRIBUTE, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    *value = devices[device].attribute[attribute];
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    ENTER(cuDeviceComputeCapability);
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(major && minor, CUDA_ERROR_INVALID_VALUE);
    *major = devices[device].attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    *minor = devices[device].attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

static void bus_id(char text[16], CUdevice device) {
    snprintf(text, 16, "0000:%02X:00.0", devices[device].attribute[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] & 0xff);
}

CUresult cuDeviceGetPCIBusId(char *out, int length, CUdevice device) {
    ENTER(cuDeviceGetPCIBusId);
    char text[16];
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    bus_id(text, device);
    REQUIRE(out && length > (int)strlen(text), CUDA_ERROR_INVALID_VALUE);
    memcpy(out, text, strlen(text) + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *wanted) {
    ENTER(cuDeviceGetByPCIBusId);
    REQUIRE(device && wanted, CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < device_count; i++) {
        char text[16];
        bus_id(text, i);
        if (!strcmp(text, wanted)) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

static bool reaches(CUdevice from, CUdevice to) { return from != to && devices[from].reachable >> to & 1; }

CUresult cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to) {
    ENTER(cuDeviceCanAccessPeer);
    REQUIRE(device_valid(from) && device_valid(to), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(can, CUDA_ERROR_INVALID_VALUE);
    *can = reaches(from, to);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
    ENTER(cuDeviceGetP2PAttribute);
    REQUIRE(device_valid(from) && device_valid(to) && from != to, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(value && attribute >= 1 && attribute <= 5, CUDA_ERROR_INVALID_VALUE);
    *value = attribute == 1 ? 0 : reaches(from, to);
    return CUDA_SUCCESS;
}

/* ---- control ---- */

void podium_recording_set_device_count(int count) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    device_count = count < 0 || count > MAX_DEVICES ? MAX_DEVICES : count;
}

int podium_recording_set_attribute(int device, int attribute, int value) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    if (device < 0 || device >= MAX_DEVICES || attribute < 1 || attribute > LAST_ATTRIBUTE) return -1;
    devices[device].attribute[attribute] = value;
    return 0;
}

void podium_recording_set_memory(int device, uint64_t bytes) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    if (device >= 0 && device < MAX_DEVICES) devices[device].total = bytes;
}

void podium_recording_set_peer(int from, int to, int reachable) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    if (from < 0 || from >= MAX_DEVICES || to < 0 || to >= MAX_DEVICES) return;
    if (reachable) devices[from].reachable |= UINT32_C(1) << to;
    else devices[from].reachable &= ~(UINT32_C(1) << to);
}
