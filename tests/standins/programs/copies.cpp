// Copies of boxes, between devices, between arrays, in batches and by nodes of graphs, and pools. Prints one line per
// fact. Two devices are needed. The runtime's constant is registered as nvcc does it; FATBIN names its fat binary.
#include <cuda_runtime_api.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
}

static float factor[1];
static struct { int magic, version; const void *data; void *unused; } wrapper;

static void registered() {
    static std::vector<char> image;
    std::ifstream file(std::getenv("FATBIN"), std::ios::binary);
    image.assign(std::istreambuf_iterator<char>(file), {});
    wrapper = {0x466243b1, 1, image.data(), nullptr};
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterVar(handle, (char *)factor, nullptr, "factor", 0, sizeof factor, 1, 0);
    __cudaRegisterFatBinaryEnd(handle);
}

static const int depth = 3, rows = 4, columns = 5;

static void between_devices() {
    float from[depth][rows][columns], to[depth][rows][columns];
    for (int i = 0; i < depth * rows * columns; i++) from[0][0][i] = i;
    cudaPitchedPtr first, second;
    cudaExtent extent = {columns * sizeof(float), rows, depth};
    cudaSetDevice(1);
    cudaMalloc3D(&second, extent);
    cudaSetDevice(0);
    cudaMalloc3D(&first, extent);
    cudaMemcpy3DParms fill = {};
    fill.srcPtr = {from, sizeof from[0][0], columns, rows};
    fill.dstPtr = first;
    fill.extent = extent;
    fill.kind = cudaMemcpyHostToDevice;
    cudaMemcpy3D(&fill);
    cudaMemcpy3DPeerParms peer = {};
    peer.srcPtr = first;
    peer.dstPtr = second;
    peer.srcDevice = 0;
    peer.dstDevice = 1;
    peer.extent = extent;
    std::printf("between devices: %s", cudaGetErrorName(cudaMemcpy3DPeer(&peer)));
    std::memset(to, 0, sizeof to);
    cudaMemcpy3DParms back = {};
    back.srcPtr = second;
    back.dstPtr = {to, sizeof to[0][0], columns, rows};
    back.extent = extent;
    back.kind = cudaMemcpyDeviceToHost;
    cudaMemcpy3D(&back);
    std::printf(", equal: %d\n", !std::memcmp(from, to, sizeof from));
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    peer.dstDevice = 7;
    std::printf("no such device: %s\n", cudaGetErrorName(cudaMemcpy3DPeerAsync(&peer, stream)));
}

static void between_arrays() {
    float from[rows][columns], to[2][10] = {};
    for (int i = 0; i < rows * columns; i++) from[0][i] = i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t narrow, wide;
    cudaMallocArray(&narrow, &format, columns, rows, 0);
    cudaMallocArray(&wide, &format, 10, 2, 0);
    cudaMemcpy2DToArray(narrow, 0, 0, from, sizeof from[0], sizeof from[0], rows, cudaMemcpyHostToDevice);
    cudaMemcpy2DToArray(wide, 0, 0, to, sizeof to[0], sizeof to[0], 2, cudaMemcpyHostToDevice);
    // 12 elements, from the third of the second row on, to the fourth on.
    cudaMemcpyArrayToArray(wide, 3 * 4, 0, narrow, 2 * 4, 1, 12 * 4, cudaMemcpyDeviceToDevice);
    cudaMemcpy2DFromArray(to, sizeof to[0], wide, 0, 0, sizeof to[0], 2, cudaMemcpyDeviceToHost);
    bool equal = true;
    for (int i = 0; i < 20; i++) equal &= to[0][i] == (i < 3 || i >= 15 ? 0 : i - 3 + 7);
    std::printf("between arrays: %d\n", equal);
}

static void in_a_batch() {
    float host[3][8], back[3][8] = {}, *device;
    for (int i = 0; i < 24; i++) host[0][i] = i;
    cudaMalloc((void **)&device, sizeof host);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMemcpy3DBatchOp copies[3] = {};
    for (int i = 0; i < 3; i++) {
        copies[i].src.type = copies[i].dst.type = cudaMemcpyOperandTypePointer;
        copies[i].src.op.ptr.ptr = host[i];
        copies[i].dst.op.ptr.ptr = device + 8 * (2 - i);
        copies[i].extent = {8 * sizeof(float), 1, 1};
        copies[i].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    }
    std::printf("batch: %s", cudaGetErrorName(cudaMemcpy3DBatchAsync(3, copies, 0, stream)));
    cudaStreamSynchronize(stream);
    cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost);
    std::printf(", %g %g %g\n", back[0][0], back[1][0], back[2][7]);
}

static void in_graphs() {
    float values[4] = {10, 20, 30, 40}, seen[2] = {}, *device;
    cudaMalloc((void **)&device, sizeof values);
    cudaMemcpy(device, values, sizeof values, cudaMemcpyHostToDevice);
    cudaGraph_t graph;
    cudaGraphNode_t to, from;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, factor, device, 4, 0, cudaMemcpyDeviceToDevice);
    cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, &seen[0], factor, 4, 0, cudaMemcpyDeviceToHost);
    cudaMemcpy3DParms given = {};
    std::printf("node: %s", cudaGetErrorName(cudaGraphMemcpyNodeGetParams(from, &given)));
    std::printf(", to %d, bytes %zu, kind %d\n", given.dstPtr.ptr == &seen[0], given.extent.width, given.kind);
    std::printf("changed: %s", cudaGetErrorName(
        cudaGraphMemcpyNodeSetParamsToSymbol(to, factor, device + 1, 4, 0, cudaMemcpyDeviceToDevice)));
    std::printf(" %s\n", cudaGetErrorName(
        cudaGraphMemcpyNodeSetParamsFromSymbol(from, &seen[1], factor, 4, 0, cudaMemcpyDeviceToHost)));
    cudaGraphExec_t executable;
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, 0);
    cudaDeviceSynchronize();
    std::printf("seen: %g %g\n", seen[0], seen[1]);
    cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, to, factor, device + 3, 4, 0, cudaMemcpyDeviceToDevice);
    cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, from, &seen[0], factor, 4, 0, cudaMemcpyDeviceToHost);
    cudaGraphLaunch(executable, 0);
    cudaDeviceSynchronize();
    std::printf("seen: %g %g\n", seen[0], seen[1]);
}

static void pools() {
    cudaMemLocation nowhere = {};
    cudaMemPool_t common, current, own;
    cudaMemGetDefaultMemPool(&common, &nowhere, cudaMemAllocationTypeManaged);
    cudaMemGetMemPool(&current, &nowhere, cudaMemAllocationTypeManaged);
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypeManaged;
    cudaMemPoolCreate(&own, &properties);
    cudaError_t chosen = cudaMemSetMemPool(&nowhere, cudaMemAllocationTypeManaged, own);
    std::printf("pools: %d %s", common == current, cudaGetErrorName(chosen));
    cudaMemGetMemPool(&current, &nowhere, cudaMemAllocationTypeManaged);
    std::printf(" %d\n", current == own);
}

static void objects() {
    static int destroyed = 0;
    cudaUserObject_t object;
    cudaGraph_t graph;
    cudaGraphCreate(&graph, 0);
    cudaUserObjectCreate(&object, &destroyed, [](void *count) { ++*(int *)count; }, 1, cudaUserObjectNoDestructorSync);
    cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    int before = destroyed;
    cudaGraphDestroy(graph);
    std::printf("destroyed: %d, then %d\n", before, destroyed);
}

int main() {
    registered();
    int order[] = {1, 0}, wrong[] = {0, 9}, device = -1;
    std::printf("valid devices: %s", cudaGetErrorName(cudaSetValidDevices(wrong, 2)));
    std::printf(" %s", cudaGetErrorName(cudaSetValidDevices(order, 2)));
    void *memory;
    cudaMalloc(&memory, 4);
    cudaGetDevice(&device);
    std::printf(" %d\n", device);
    between_devices();
    between_arrays();
    in_a_batch();
    in_graphs();
    pools();
    objects();
    std::printf("last: %s\n", cudaGetErrorName(cudaPeekAtLastError()));
    return 0;
}
