import pytest

from library_tour import device_code


@pytest.mark.parametrize(
    ("folders", "found"),
    [
        (["kernels"], "kernels"),
        (["library_tour/kernels"], "library_tour/kernels"),
        (["kernels", "library_tour/kernels"], "library_tour/kernels"),
    ],
    ids=["a checkout", "a wheel", "a wheel beside another distribution named kernels"],
)
def test_device_code_is_beside_the_package_or_inside_it(tmp_path, folders, found):
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "idea.cu").touch()
    assert device_code.find("idea", tmp_path / "library_tour") == tmp_path / found / "idea.cu"


def test_missing_device_code_names_both_places(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        device_code.find("idea", tmp_path / "library_tour")
    for folder in (tmp_path / "library_tour", tmp_path):
        assert str(folder / "kernels" / "idea.cu") in str(error.value)


def test_blocks_cover_the_count():
    assert [device_code.blocks_for(count, 256) for count in (1, 256, 257)] == [1, 1, 2]
