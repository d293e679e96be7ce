"""Services without a connection of their own are asked in turn, several in one go, and no more a second for that."""

import pytest

from discovery.consul.lanes import POLLS_PER_S, TOGETHER_S, Lanes


@pytest.mark.parametrize("began", [0.0, 12_345.678])
def test_turns_come_together_and_keep_their_rate(began: float) -> None:
    lanes = Lanes(1, lambda: began)
    waits = [lanes.turn_s() for _ in range(100)]
    alone = [max(0.0, i / POLLS_PER_S) for i in range(100)]
    assert all(0.0 <= wait - own < TOGETHER_S + 1e-6 for wait, own in zip(waits, alone, strict=True))
    assert len({round(wait, 6) for wait in waits}) <= 100 / (POLLS_PER_S * TOGETHER_S) + 1
