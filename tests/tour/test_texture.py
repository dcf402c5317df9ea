from library_tour.course import texture
from tests.tour.outcomes import counted


@counted
def test_patches_touch_fewer_sectors_of_a_rotated_image_and_the_texture_unit_saves_instructions(rows):
    plain, patch, fetched, ldg = (
        rows[name].values for name in ("plain loads", "plain, 8 x 4 warps", "texture", "__ldg")
    )
    assert plain["sectors 90°"] > 6 * plain["sectors 0°"]
    for sectors in (f"sectors {angle}°" for angle in texture.ANGLES):
        assert patch[sectors] < 3 * patch["sectors 0°"]
        assert fetched[sectors] >= plain[sectors]
    # The texture unit reads four texels at a time, which lie in four rows at 90°.
    assert fetched["sectors 90°"] == plain["sectors 90°"] == rows["texture, 8 x 4 warps"].values["sectors 90°"]
    # The number of instructions depends on the compiler: NVRTC 13.0 generates others.
    assert {**ldg, "instructions": None} == {**plain, "instructions": None}
    assert rows["filter: plain loads"].values["instructions"] > 2 * rows["filter: texture"].values["instructions"]
