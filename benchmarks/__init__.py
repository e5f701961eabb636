"""How fast is it, and how good, beside what it is made of?"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # whose servers and stores benchmarks use
