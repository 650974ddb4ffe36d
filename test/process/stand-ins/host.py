"""Loads the strategy of a recipe as its host does, and runs it: `python3 host.py FILE`."""

import importlib.util
import sys

spec = importlib.util.spec_from_file_location("strategy", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.Guarded().run()
