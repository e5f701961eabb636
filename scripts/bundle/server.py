"""What Claude Desktop starts: `kb mcp`. The arguments are the folders that may be indexed."""

import os
import sys

from concord.cli.main import main

if folders := [folder for folder in sys.argv[1:] if folder]:
    os.environ["KB_MCP_ROOTS"] = os.pathsep.join(folders)
sys.exit(main(["mcp"]))
