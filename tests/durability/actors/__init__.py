# SPDX-License-Identifier: Apache-2.0
"""The actors of `long_storm`, by name."""

from tests.durability.actors.actor import Actor
from tests.durability.actors.habits import Cursors, Openings, Tasks
from tests.durability.actors.hops import Hops
from tests.durability.actors.late import Late
from tests.durability.actors.line import Line
from tests.durability.actors.room import Room
from tests.durability.actors.signals import Signals

ACTORS: dict[str, type[Actor]] = {
    actor.name: actor for actor in (Late, Hops, Line, Signals, Openings, Cursors, Tasks, Room)
}
