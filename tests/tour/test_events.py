from library_tour import timing


def test_only_a_wait_makes_the_work_done(result):
    [rows] = result.tables.values()
    done = {row.name: row.values["done"] for row in rows if "done" in row.values}
    assert done["host, one wait"] == done["host, wait after each"] == "yes"
    if not timing.available():  # a GPU may have finished so few temperatures already
        assert done["host, no wait"] == "no"
