"""How fast is it, and how good, beside what it is made of?"""

import sys
from pathlib import Path

# What fills stores and starts servers for the tests does so for benchmarks.
sys.path.append(str(Path(__file__).parent.parent / "tests"))
