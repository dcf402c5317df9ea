import numpy as np
import pytest

from library_tour.course import synchronization


@pytest.mark.parametrize("size", [1, 2, 257])
def test_both_variants_smooth_any_number_of_elements(size, rng, device):
    for variant in synchronization.smoothing(device, synchronization.load_all(), rng, size):
        variant.prepare()
        variant.launch()
        assert np.allclose(variant.output.to_host(), variant.expected, atol=1e-6)
