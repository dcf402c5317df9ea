from library_tour import timing


def test_only_a_wait_makes_the_work_done(result):
    [rows] = result.tables.values()
    done = {row.name: row.values["done"] for row in rows if "done" in row.values}
    assert done["host, one wait"] == done["host, each waits"] == "yes"
    if not timing.available():  # so few temperatures a GPU may have cooled meanwhile
        assert done["host, no wait"] == "no"
