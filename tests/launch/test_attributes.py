"""Launch attributes: cooperative launches, clusters, programmatic dependence, priorities; and the L2 access policy."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import enums
from cudart_py.driver.calls import api
from cudart_py.streams import access_policy

KERNELS = """
#include <cuda_device_runtime_api.h>
extern "C" __global__ void produce(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    if (i < n) x[i] = i;
}
extern "C" __global__ void consume(int *y, const int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaGridDependencySynchronize();
    if (i < n) y[i] = 2 * x[n - 1 - i];
}
extern "C" __global__ void fill(float *x, float value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
extern "C" __global__ void grid_sum(unsigned int *arrived, unsigned int *out) {
    // A grid barrier by hand: it ends only if all blocks are resident at once.
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned int *)arrived < gridDim.x) { }
        out[blockIdx.x] = *(volatile unsigned int *)arrived;
    }
}
extern "C" __global__ void cluster_shape(unsigned int *out) {
    unsigned int x, y, rank;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(x));
    asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(y));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    unsigned int block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) { out[3 * block] = x; out[3 * block + 1] = y; out[3 * block + 2] = rank; }
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) compiled(unsigned int *out) {
    unsigned int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    out[blockIdx.x] = rank;
}
"""
N = 100_000


def test_a_cooperative_grid_is_resident_at_once_also_by_a_bound_launch(device, kernels):
    blocks = device.sm_count if "concurrent_host" in cuda.capabilities() else 8
    launch = kernels["grid_sum"].configure(blocks, 32, cooperative=True)
    for bind in (False, True):
        arrived, out = cuda.zeros(1, np.uint32), cuda.zeros(blocks, np.uint32)
        if bind:
            launch.bind(arrived, out)()
        else:
            launch(arrived, out)
        np.testing.assert_array_equal(out.to_host(), np.full(blocks, blocks))


def test_a_kernel_takes_no_attribute_of_another_package(kernels):
    kernel = kernels[kernels.kernels[0]]
    with pytest.raises(AttributeError):
        kernel.max_dynamic_shared_memory = 5  # cupy.RawKernel's name for it is longer
    kernel.carveout = 50


def test_a_cooperative_grid_that_is_too_large_names_the_most_blocks(device, kernels):
    kernel = kernels["grid_sum"]
    most = kernel.occupancy(256).blocks * device.sm_count
    kernel.configure(most, 256, cooperative=True)
    words = rf"grid_sum: a cooperative grid of \({most + 1}, 1, 1\) has {most + 1} blocks, but only {most}"
    with pytest.raises(cuda.errors.LaunchError, match=words):
        kernel.configure(most + 1, 256, cooperative=True)


@pytest.mark.parametrize("cluster", [2, (2, 1), (2, 2, 1), (1, 4), 1, (4, 4)])
def test_clusters_have_the_shape_that_was_asked_for(device, kernels, cluster):
    out = cuda.zeros((16, 3), np.uint32)
    kernels["cluster_shape"].configure((4, 4), 32, cluster=cluster)(out)
    x, y = (*(cluster if isinstance(cluster, tuple) else (cluster,)), 1)[:2]
    values = out.to_host()
    np.testing.assert_array_equal(values[:, :2], np.full((16, 2), (x, y)))
    assert sorted(values[:, 2]) == sorted(list(range(x * y)) * (16 // (x * y)))


def test_a_kernel_compiled_for_clusters_is_launched_as_any(device, kernels):
    out = cuda.zeros(4, np.uint32)
    assert kernels["compiled"].required_cluster == (2, 1, 1)
    kernels["compiled"][4, 1](out)
    np.testing.assert_array_equal(out.to_host(), [0, 1, 0, 1])


BAD = [
    ("cluster_shape", (4, 4), {"cluster": (3, 1)}, "'grid.x' must be a multiple of 'cluster.x', 3, not 4"),
    ("cluster_shape", (4, 4), {"cluster": (2, 8)}, "'grid.y' must be a multiple of 'cluster.y', 8, not 4"),
    ("cluster_shape", 64, {"cluster": 32}, r"at most \d+ blocks on this device, not 32 in \(32, 1, 1\)"),
    ("compiled", 4, {"cluster": 4}, r"compiled: argument 'cluster' must be \(2, 1, 1\), .* not \(4"),
    ("compiled", 3, {}, "compiled: argument 'grid.x' must be a multiple of .* 2, not 3"),
    ("fill", 1, {"priority": 99}, "fill: argument 'priority' must be an int from .* not the int 99"),
    ("fill", 1, {"carveout": 101}, "fill: argument 'carveout' must be an int from 0 to 100, not the int"),
    ("fill", 1, {"cluster_scheduling": "random"}, "'cluster_scheduling' must be one of 'default', 'spr"),
]


@pytest.mark.parametrize(("name", "grid", "options", "words"), BAD)
def test_a_bad_attribute_names_kernel_and_limit(device, kernels, name, grid, options, words):
    with pytest.raises(ValueError, match=words):
        kernels[name].configure(grid, 32, **options)


@pytest.mark.parametrize("is_captured", [False, True])
def test_a_dependent_launch_reads_what_the_launch_before_it_wrote(device, kernels, is_captured):
    with cuda.Stream() as stream:
        x, y = cuda.zeros(N, np.int32, stream=stream), cuda.zeros(N, np.int32, stream=stream)

        def launch():
            kernels["produce"][391, 256, 0, stream](x, N)
            kernels["consume"].configure(391, 256, 0, stream, programmatic=True)(y, x, N)

        if is_captured:
            with stream.capture("relaxed") as graph:
                launch()
            graph.instantiate().launch(stream)
        else:
            launch()
            launch()
        np.testing.assert_array_equal(y.to_host(stream=stream), 2 * np.arange(N)[::-1])
        x.close()
        y.close()


OPTIONS = [
    {"priority": 0},
    {"carveout": 50},
    {"carveout": 0},
    {"cluster": 2, "cluster_scheduling": "spread"},
    {"cluster": 2, "cluster_scheduling": "load_balancing"},
    {"memory_domain": "remote"},
    {"programmatic": True, "carveout": 100, "memory_domain": "default"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_launch_with_attributes_computes_the_same(device, kernels, options):
    x = cuda.zeros(128, np.float32)
    kernels["fill"].configure(4, 32, **options)(x, 3.0)
    np.testing.assert_array_equal(x.to_host(), np.full(128, 3.0))


def test_a_kernels_carveout_is_read_and_set(device, kernels):
    kernel = kernels["fill"]
    assert kernel.carveout is None
    kernel.carveout = 25
    assert kernel.carveout == 25
    kernel.carveout = None
    assert kernel.carveout is None
    with pytest.raises(ValueError, match="'carveout' must be an int from 0 to 100, not the int 200"):
        kernel.carveout = 200


def test_the_access_policy_is_the_streams_inside_the_block_only(device, module):
    attribute = enums.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW

    def window(stream):
        return api.cuStreamGetAttribute(stream.handle, attribute).accessPolicyWindow

    with cuda.Stream() as stream:
        x, y = cuda.full(1000, 1, np.float32, stream=stream), cuda.zeros(1000, np.float32, stream=stream)
        with stream.access_policy(x, hit_ratio=0.5):
            inside = window(stream)
            assert inside.num_bytes == 4000
            assert inside.hitRatio == 0.5
            assert inside.hitProp == enums.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
            module["saxpy"][4, 256, 0, stream](1.0, x, y, 1000)
        assert window(stream).num_bytes == 0
        np.testing.assert_array_equal(y.to_host(stream=stream), np.ones(1000))
        device.reset_persisting_l2()
        x.close()
        y.close()


def test_a_stream_may_be_closed_inside_its_access_policy_which_passes_on_errors(device):
    array, stream = cuda.zeros(10), cuda.Stream()

    def close_and_use():
        with stream.access_policy(array):
            stream.close()
            cuda.memset(array, 0, stream=stream)

    with pytest.raises(ValueError, match="^memset"):
        close_and_use()
    assert not access_policy._policies, "a later stream may have the same handle"


def test_an_access_policy_is_for_a_contiguous_array_and_holds_in_one_block_at_a_time(device, stream):
    for options in ({"hit_ratio": 1.5}, {"hit": "always"}, {"miss": "persisting"}):
        with pytest.raises(ValueError, match=f"argument '{next(iter(options))}' must be "):
            stream.access_policy(cuda.zeros(10), **options)
    with pytest.raises(ValueError, match="must be contiguous"):
        stream.access_policy(cuda.zeros(10)[::2])
    policy = stream.access_policy(cuda.zeros(10))
    with policy, pytest.raises(ValueError, match="is already in use"), policy:
        pass
    with policy:
        assert access_policy.policy_of(stream) is policy
    assert access_policy.policy_of(stream) is None


def test_registers_are_named_only_where_they_can_be_the_limit(device, module):
    with pytest.raises(ValueError, match=r"this kernel's limit is 64 \(its __launch_bounds__\)"):
        module["bounded"][1, 128]
    source = """__global__ void wide(float* x, int n) {
        float own[100];
        #pragma unroll
        for (int k = 0; k < 100; k++) own[k] = x[k];
        for (int i = 0; i < n; i++)
            #pragma unroll
            for (int k = 0; k < 100; k++) own[k] = x[k] = own[k] * own[(k + 37) % 100] + x[i];
    }"""
    wide = cuda.compile(source)["wide"]
    assert wide.attributes.max_threads_per_block < 1024
    with pytest.raises(ValueError, match=rf"\({wide.attributes.registers} registers per thread"):
        wide[1, 1024]
