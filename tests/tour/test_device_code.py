from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import library_tour
from library_tour import device_code

PACKAGE = Path(library_tour.__file__).parent


def test_a_checkout_has_the_folder_beside_the_package(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "idea.cu").touch()
    assert device_code.find("idea", tmp_path / "library_tour") == tmp_path / "kernels" / "idea.cu"


def test_a_wheel_has_the_folder_inside_the_package(tmp_path):
    (tmp_path / "library_tour" / "kernels").mkdir(parents=True)
    (tmp_path / "library_tour" / "kernels" / "idea.cu").touch()
    assert device_code.find("idea", tmp_path / "library_tour") == tmp_path / "library_tour" / "kernels" / "idea.cu"


def test_inside_wins_so_that_another_distribution_named_kernels_does_not(tmp_path):
    for folder in (tmp_path / "library_tour" / "kernels", tmp_path / "kernels"):
        folder.mkdir(parents=True)
        (folder / "idea.cu").touch()
    assert device_code.find("idea", tmp_path / "library_tour").parent.parent.name == "library_tour"


def test_missing_device_code_names_both_places(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        device_code.find("idea", tmp_path / "library_tour")
    assert str(tmp_path / "library_tour" / "kernels" / "idea.cu") in str(error.value)
    assert str(tmp_path / "kernels" / "idea.cu") in str(error.value)


def test_a_wheels_layout_compiles_what_it_carries(tmp_path):
    """The package copied as a wheel installs it, with the folder inside, still finds every file."""
    kernels = device_code.find("vector_add").parent
    package = tmp_path / "library_tour"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(kernels, package / "kernels", dirs_exist_ok=True)
    for source in kernels.glob("*.cu"):
        assert device_code.find(source.stem, package) == package / "kernels" / source.name


@pytest.mark.parametrize(("count", "block", "blocks"), [(1, 256, 1), (256, 256, 1), (257, 256, 2), (1000, 32, 32)])
def test_blocks_cover_the_count(count, block, blocks):
    assert device_code.blocks_for(count, block) == blocks
