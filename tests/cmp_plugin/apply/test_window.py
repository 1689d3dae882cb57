"""A campaign's window: a change of how many pods run at once makes Kueue stop them all."""

from __future__ import annotations

import pytest

from tests.cmp_plugin.apply.teams import Team


def test_a_changed_window_of_a_campaign_that_runs_stops_everything_and_of_a_paused_one_does_not(team: Team) -> None:
    team.settings(window=4)
    team.campaign("letters", "R1", "R2", "R3", window=2)
    assert team.apply().code == 0
    team.campaign("letters", "R1", "R2", "R3", window=3)

    done = team.apply()
    assert (done.code, done.out) == (1, "")
    assert "the window of the campaign letters changes from 2 to 3" in done.err

    team.campaign("letters", "R1", "R2", "R3", window=2, suspend=True)
    assert team.apply().code == 0
    team.campaign("letters", "R1", "R2", "R3", window=3)
    resumed = team.apply()
    assert resumed.code == 0, resumed
    assert {"updated Job/letters", "resumed Job/letters"} <= {*resumed.lines}
    assert team.namespace.job("letters")["spec"]["parallelism"] == 3


@pytest.mark.slow
def test_a_window_above_the_number_of_volumes_changes_no_pod(team: Team) -> None:
    team.settings(window=20)
    team.campaign("letters", "R1", "R2", window=10)
    assert team.apply().code == 0
    team.campaign("letters", "R1", "R2", window=5)

    done = team.apply()

    assert done.code == 0, done
    assert team.namespace.job("letters")["spec"]["parallelism"] == 5
