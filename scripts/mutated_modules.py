"""The modules that scripts/mutation_test.py changes, and the tests that should notice."""

_QUEUE = "cudart_py/simulator/state/queue/"
_OPERATIONS = "cudart_py/simulator/ptx/operations/"
_OPERATION_TESTS = "tests/simulator/ptx/operations/"
_RECORDED = "tests/conformance/test_conformance.py"
_QUEUE_TESTS = (
    "tests/simulator/state/test_queue.py",
    "tests/simulator/state/test_interrupts.py",
    "tests/simulator/checks/test_streams.py",
)
_STREAM_TESTS = (
    "tests/simulator/state/test_queue.py",
    "tests/simulator/calls/test_contexts.py",
    "tests/streams/test_stream.py",
    "tests/streams/test_calls_in_captures.py",
)
# Each module with its own tests. The tests of all modules run under coverage, since one often executes another module.
MODULES = {
    "cudart_py/copies.py": (
        "tests/memory/test_cuda_array.py",
        "tests/memory/test_copies.py",
        "tests/memory/test_copy_ways.py",
        "tests/memory/test_peer.py",
        "tests/memory/test_staging.py",
    ),
    "cudart_py/memory/transfers.py": (
        "tests/memory/test_array_methods.py",
        "tests/memory/test_copies.py",
        "tests/memory/test_copy_ways.py",
    ),
    "cudart_py/launch/launch.py": (
        "tests/launch/test_launch.py",
        "tests/launch/test_attributes.py",
        "tests/launch/test_conversion.py",
        "tests/launch/test_module.py",
        "tests/streams/test_graph_nodes.py",
    ),
    "cudart_py/compilation/cache.py": ("tests/compilation/test_cache.py", "tests/compilation/test_cache_folder.py"),
    "cudart_py/context/capture.py": (
        "tests/context/test_capture_ends.py",
        "tests/context/test_capture_lifetime.py",
        "tests/memory/test_graph_memory.py",
        "tests/streams/test_graph.py",
    ),
    _QUEUE + "scheduling.py": _QUEUE_TESTS,
    _QUEUE + "stream.py": _QUEUE_TESTS,
    _QUEUE + "work.py": _QUEUE_TESTS,
    "cudart_py/simulator/calls/streams/streams.py": _STREAM_TESTS,
    "cudart_py/simulator/state/streams.py": _STREAM_TESTS,
    "cudart_py/simulator/ptx/arrays/expressions.py": (_OPERATION_TESTS + "test_integers.py", _RECORDED),
    **{
        f"cudart_py/simulator/ptx/{name}.py": (_OPERATION_TESTS + "test_floating.py", _RECORDED)
        for name in (
            "arrays/double",
            "arrays/floats",
            "instructions/approximations",
            "instructions/number_formats/double_rounding",
            "instructions/floats",
            "instructions/number_formats/rounding",
        )
    },
    **{
        f"cudart_py/simulator/ptx/instructions/{name}.py": (_OPERATION_TESTS + "test_integers.py", _RECORDED)
        for name in (
            "comparisons",
            "integer_math/integers",
            "integer_math/logic",
            "movement",
        )
    },
    "cudart_py/simulator/ptx/instructions/video.py": (_OPERATION_TESTS + "test_video.py",),
    "cudart_py/simulator/ptx/instructions/conversions.py": (
        _OPERATION_TESTS + "test_integers.py",
        _OPERATION_TESTS + "test_conversions.py",
        _RECORDED,
    ),
    "cudart_py/simulator/ptx/instructions/number_formats/formats.py": (
        _OPERATION_TESTS + "test_conversions.py",
        _RECORDED,
    ),
    "cudart_py/simulator/ptx/instructions/halves.py": (_OPERATION_TESTS + "test_half.py", _RECORDED),
    "cudart_py/simulator/ptx/instructions/warps.py": (_OPERATION_TESTS + "test_warp.py", _RECORDED),
    _OPERATIONS + "mbarriers.py": (_OPERATION_TESTS + "test_mbarriers.py",),
    "cudart_py/simulator/ptx/instructions/matrices.py": (
        _OPERATION_TESTS + "test_matrix_products.py",
        _RECORDED,
        "tests/launch/test_tensor_cores.py",
    ),
    "cudart_py/simulator/ptx/running/memory/barrier_waits.py": ("tests/simulator/ptx/running/test_barrier_waits.py",),
    "cudart_py/simulator/checks/races/warp_clocks.py": (
        "tests/simulator/checks/test_warp_clocks.py",
        "tests/simulator/checks/test_memory_barriers.py",
    ),
}

# Further tests that execute these modules.
NEIGHBOURS = (
    "tests/context",
    "tests/launch/test_bulk_copies.py",
    "tests/simulator/calls",
    "tests/simulator/ptx/compiling",
    "tests/simulator/state",
    "tests/streams",
)
