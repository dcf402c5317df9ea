from dataclasses import replace

import pytest

import cudart_py as cuda
from library_tour.course import l2_persistence
from library_tour.course.l2_persistence import FITS, HITS, WAYS
from library_tour.runner import run_stop


def test_a_policy_keeps_the_weights_in_the_model(result):
    hits = {row.name: row.values[HITS] for row in result.rows}
    assert hits["no policy"] == hits["policy: streaming"] == hits["large: persisting"] == 0
    assert hits["policy: persisting"] == hits["__ldcs for the values"] == 1
    assert hits["large: tuned ratio"] == pytest.approx(FITS / l2_persistence.EXCEEDS, abs=0.02)


def test_persisting_lines_take_space_until_they_are_reset(result):
    [others] = result.tables.values()
    assert [row.values[HITS] for row in others] == [1, 0, 1, 1]


def test_the_tuned_curve_falls_slowest(result):
    model, *_ = result.pictures
    no_policy, persisting, tuned = ([y for _, y in line] for line in model.lines.values())
    assert all(a <= b <= c for a, b, c in zip(no_policy, persisting, tuned, strict=True))
    assert tuned[-1] > 0.4 > persisting[-1]


def test_the_set_aside_is_as_large_as_possible_and_restored(device):
    before = device.limits.persisting_l2_cache_size
    with l2_persistence.set_aside(device) as nbytes:
        assert device.limits.persisting_l2_cache_size == nbytes == device.properties.max_persisting_l2_cache_size
    assert device.limits.persisting_l2_cache_size == before


def test_each_launch_has_the_policy_of_its_variant(monkeypatch, any_clock):
    policies = []
    access_policy = cuda.Stream.access_policy

    def recorded(stream, array, **options):
        policies.append((array.nbytes, options))
        return access_policy(stream, array, **options)

    monkeypatch.setattr(cuda.Stream, "access_policy", recorded)
    run_stop("l2_persistence", cuda.Device(0), 64)
    weights = 16 * l2_persistence.CHECKED_WEIGHTS
    assert (weights, {"hit_ratio": WAYS["large: tuned ratio"].ratio, "hit": "persisting"}) in policies
    assert (weights, {"hit_ratio": 1.0, "hit": "streaming"}) in policies
    # Weights that were persisting are read again with the policy "normal".
    [index] = [index for index, (_, options) in enumerate(policies) if options["hit"] == "normal"]
    before, normal = policies[index - 1 : index + 1]
    assert before[1] == {"hit_ratio": 1.0, "hit": "persisting"}
    assert normal == (before[0], {"hit_ratio": 1.0, "hit": "normal"})


def test_the_notes_mention_a_device_that_sets_nothing_aside(device, monkeypatch):
    properties = replace(device.properties, max_persisting_l2_cache_size=0)
    monkeypatch.setattr(type(device), "properties", property(lambda self: properties))
    monkeypatch.setattr(l2_persistence, "WINDOWS", (0.5,))
    outcome = run_stop("l2_persistence", device, 64)
    assert outcome.state == "passed"
    assert [row.name for row in outcome.result.rows] == [name for name, way in WAYS.items() if not way.hit]
    assert not outcome.result.tables
    assert "sets nothing aside" in outcome.result.notes[-1]
