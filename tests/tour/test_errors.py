import cudart_py as cuda
from library_tour.course import errors
from library_tour.course.errors import Mistake, error_of, judged, told


def test_the_device_still_works(device, result):
    assert errors.filled(3).tolist() == [3, 3, 3]


def no_mistake() -> str:
    return told(error_of(lambda: None), "cuDriverGetVersion", cuda.raw.cuDriverGetVersion())


def test_a_mistake_that_raises_nothing_is_noticed(device):
    row = judged("none", Mistake(no_mistake, "ValueError", "CUDA_SUCCESS", apart=False), no_mistake())
    assert not row.check.holds


def test_no_folder_of_this_machine_is_shown(result):
    assert not [row.name for row in result.all_rows if " /" in row.note.replace("\n", " ")]
