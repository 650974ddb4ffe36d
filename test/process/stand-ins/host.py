"""Loads the strategy of a recipe and runs it as its host would: `python3 host.py FILE`."""

import importlib.util
import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = {
    "freqtrade.strategy": "freqtrade.py",
    "hummingbot.strategy.script_strategy_base": "hummingbot.py",
}


def load(name, file):
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


for name, file in MODULES.items():
    parts = name.split(".")
    for length in range(1, len(parts)):
        sys.modules.setdefault(".".join(parts[:length]), types.ModuleType(parts[length - 1]))
    load(name, os.path.join(HERE, file))

load("bot_strategy", sys.argv[1]).Guarded().run()
