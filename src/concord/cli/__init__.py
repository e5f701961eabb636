"""What does a person type, and what do they read?"""

from concord.cli.quick_start import import_click

import_click()  # before the first module in here does
