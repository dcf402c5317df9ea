"""Stream-ordered memory: the use of a pool, and a missing wait between two streams."""

import cudart_py as cuda
from library_tour.course import stream_ordered


def test_a_pool_keeps_freed_memory_until_it_is_trimmed_and_a_full_one_names_its_limit(rows):
    found = [rows[name].values for name in ("four arrays", "three freed", "all freed, trimmed")]
    assert [values["used MiB"] for values in found] == [256, 64, 0]
    assert found[0]["reserved MiB"] == found[1]["reserved MiB"] >= 256
    assert found[2]["reserved MiB"] == 0
    assert f"at most {stream_ordered.CHUNK:,}" in rows["more than max_size"].note


def test_the_waiting_program_has_no_wrong_elements(device):
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with cuda.sanitizer("error"):
        assert stream_ordered.second_reads(first, second, lambda term: term.close(stream=second)) == ""
