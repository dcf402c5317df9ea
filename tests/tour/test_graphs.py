from library_tour.course import graphs
from tests.tour.outcomes import counted


def test_a_graph_is_one_call_of_the_host(result):
    calls = {row.name: row.values["calls"] for row in result.rows}
    assert calls["launches, arguments bound"] == graphs.STEPS
    assert calls[graphs.GRAPH] == calls[graphs.LOOP] == 1


@counted
def test_a_graph_saves_no_pass_over_memory_and_the_loop_inside_does(result):
    [rows] = [rows for heading, rows in result.tables.items() if "temperatures" in heading]
    loads = {row.name: row.values["loads"] for row in rows}
    assert loads[graphs.GRAPH] == loads["launches, arguments bound"] == graphs.STEPS * loads[graphs.LOOP]
