"""A readable repr of all public objects, and HTML of those that notebooks show as tables."""

import inspect
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import cudart_py as cuda
import cudart_py.benchmark
import cudart_py.libraries
from cudart_py.benchmark import Measurement
from cudart_py.benchmark.record import Peer
from cudart_py.streams.access_policy import AccessPolicy
from cudart_py.streams.graphs.capturing import Capturing
from cudart_py.streams.graphs.conditionals import ConditionalNode

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (cuda, cudart_py.benchmark, cudart_py.libraries)
    for name in module.__all__
    if inspect.isclass(getattr(module, name))
}
# Classes without a public name, whose objects public calls return.
RETURNED = {kind.__name__: kind for kind in (AccessPolicy, ConditionalNode, Capturing)}
EVIL = '<script>alert("&")</script>'


def cells(thing):
    """Return the texts of the table cells that a notebook shows; the HTML must be well-formed XML."""
    html = re.sub("<w?br>", "", thing._repr_html_())
    assert "<script" not in html
    return [
        "".join(each.itertext()) for each in ElementTree.fromstring(f"<p>{html}</p>").iter() if each.tag in ("td", "th")
    ]


def facts(thing):
    """Return a table of two columns as a dictionary."""
    texts = cells(thing)
    return dict(zip(texts[::2], texts[1::2], strict=True))


def test_public_classes_have_reprs_of_their_own():
    assert [name for name, kind in (PUBLIC | RETURNED).items() if kind.__repr__ is object.__repr__] == []


def test_what_is_made_on_a_device_says_what_it_is_of(device, module):
    launch = module["bounded"][2, 32]
    assert repr(launch.bind(cuda.zeros(64, np.int32))) == repr(launch).replace("<Launch", "<BoundLaunch")
    with cuda.timed() as timer:
        assert repr(timer) == "<Timer, running>"
    assert repr(timer) == f"<Timer {timer.milliseconds:.4g} ms>"
    memory = cuda.register_host(np.zeros((3, 4), np.float32))
    assert repr(memory) == "<RegisteredMemory of (3, 4) float32>"
    memory.close()
    assert repr(memory) == "<RegisteredMemory closed>"
    stream, x = cuda.Stream(), cuda.zeros(1000, np.float32)
    assert repr(stream.capture()) == f"<Capturing of {stream!r}>"
    assert repr(stream.access_policy(x)) == f"<AccessPolicy of {stream!r}>"
    assert repr(cuda.nvtx_range("solve")) == "nvtx_range('solve')"
    assert repr(cuda.nvtx_range("solve", color="red", domain="d")) == "nvtx_range('solve', color='red', domain='d')"


@pytest.mark.needs("libraries")
def test_sparse_operands_and_generators_say_what_they_are(device):
    values, indices = cuda.to_device(np.ones(2, np.float32)), cuda.to_device(np.array([0, 3], np.int32))
    vector = cuda.libraries.SparseVector(5, indices, values)
    assert repr(vector) == "<SparseVector of 5 float32, 2 stored>"
    offsets = cuda.to_device(np.array([0, 1, 2], np.int32))
    matrix = cuda.libraries.SparseMatrix("csr", (2, 4), values, indices, offsets)
    assert repr(matrix) == "<SparseMatrix csr (2, 4) float32, 2 stored>"
    with cuda.libraries.Generator("philox", 1) as generator:
        assert repr(generator) == f"<Generator philox on device {device.ordinal}>"
    assert repr(generator) == "<Generator closed>"


METRICS = {"smsp__inst_executed.sum": 8.0, "smsp__thread_inst_executed.sum": 256.0}


def launch(kernel="scale", lines=(), metrics=METRICS, sources=None):
    return cuda.profiling.LaunchProfile(kernel, (2, 1, 1), (32, 1, 1), metrics, tuple(lines), sources or {})


def profile_of(*launches):
    profile = cuda.profile()
    profile._launches = launches
    return profile


def test_profiles_and_measurements_are_short():
    line = cuda.profiling.LineProfile("scale.cu", 3, METRICS)
    assert repr(line) == "<LineProfile scale.cu:3, 2 metrics>"
    assert repr(launch(lines=[line])) == "<LaunchProfile scale[2, 32], 1 line>"
    assert repr(profile_of(launch(), launch(), launch("add"))) == "<Profile of 3 launches: 2 x scale, add>"
    many = profile_of(*(launch(f"kernel{number}") for number in range(30)))
    assert repr(many) == "<Profile of 30 launches: kernel0, kernel1, kernel2, kernel3, kernel4, ...>"
    measurement = Measurement((1e-3,) * 500, bytes=4e9, device="NVIDIA H200")
    assert repr(measurement) == f"<Measurement {measurement}>"


def test_a_device_and_an_array_show_what_they_are_and_copy_nothing(device, monkeypatch):
    x = cuda.to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
    monkeypatch.setattr(cuda.DeviceArray, "to_host", None)
    found = facts(device)
    assert found[f"device {device.ordinal}"] == device.name
    assert found["compute capability"] == ".".join(map(str, device.compute_capability))
    assert found["multiprocessors"] == str(device.sm_count)
    assert found["memory"].endswith(" GiB")
    shown = {"shape": "(3, 4)", "dtype": "float32", "bytes": "48", "device": f"{device.ordinal}: {device.name}"}
    assert facts(x).items() >= shown.items()
    assert "strides" not in facts(x)
    assert facts(x[:, 1])["strides"] == "(16,)"
    x.close()
    assert facts(x)["shape"] == "(3, 4), closed"


def test_a_preview_has_the_first_values(device):
    x = cuda.to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
    preview = x.preview(2)
    np.testing.assert_array_equal(preview.values, [[0, 1], [4, 5]])
    assert repr(preview) == "<first values of (3, 4) float32>\n[[0. 1.]\n [4. 5.]]"
    assert cells(preview) == ["0.0", "1.0", "…", "4.0", "5.0", "…", "…", "…", "…"]
    np.testing.assert_array_equal(x[1:, ::2].preview().values, [[4, 6], [8, 10]])
    pitched = cuda.empty_pitched((3, 4), np.float32).copy_from(x)
    np.testing.assert_array_equal(pitched.preview(2).values, preview.values)
    for count in (0, 2.5, True):
        with pytest.raises((TypeError, ValueError), match=r"DeviceArray\.preview: argument 'count'"):
            x.preview(count)
    x.close()
    with pytest.raises(ValueError, match="closed"):
        x.preview()


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3, 4), (2, 2, 9, 9), (0,), (0, 3), (3, 0, 2)])
def test_a_preview_takes_any_shape(device, shape):
    host = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    preview = cuda.to_device(host).preview(3)
    corner = host[(0,) * (host.ndim - 2) + (slice(3),) * min(2, host.ndim)] if host.size else host
    np.testing.assert_array_equal(preview.values, corner)
    cells(preview)
    assert repr(preview).startswith(f"<first values of {shape} int32>")


def test_a_measurement_shows_what_it_knows():
    peers = {EVIL: Peer(2e-3, 0.5, 0.01)}
    timed = Measurement((1e-3, 1.1e-3, 0.9e-3), bytes=4e9, ceiling=4.3e12, ceiling_name="copy", peers=peers)
    shown = {"median": "1 ms", "rate": "4,000 GB/s", "of ceiling": "93.0 % of copy", "samples": "3"}
    assert facts(timed).items() >= (shown | {f"beside {EVIL}": "0.5 × its time of 2 ms"}).items()
    counted = {"kernel": EVIL, "grid": (1, 1, 1), "block": (32, 1, 1)}
    found = facts(Measurement((), counters=(counted, counted), device="a simulator"))
    assert (found["median"], found["counted"]) == ("not timed", f"2 launches: 2 x {EVIL}")


def test_a_profile_shows_launches_lines_and_advice():
    metrics = METRICS | {
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 8.0,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 256.0,
        "smsp__sass_data_bytes_mem_global_op_st.sum": 1024.0,
    }
    line = cuda.profiling.LineProfile("scale.cu", 1, metrics)
    found = launch(EVIL, [line], metrics, {"scale.cu": f"// {EVIL}"})
    for thing in (profile_of(found), found):
        assert {EVIL, f"// {EVIL}", "12.5 %"} <= set(cells(thing))
        assert "The stores use 12.5 %" in re.sub("<.*?>", "", thing._repr_html_())
    assert cuda.profile()._repr_html_() == "<p>no launches</p>"
