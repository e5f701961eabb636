"""What does a person type, and what do they read?"""

import gc

# New objects before the collector looks for cycles among them: importing makes thousands and no garbage. At
# Python's own 700 it would look forty times before a quick search is over, a twentieth of what that takes.
gc.set_threshold(20_000)
