"""The hook of hummingbot's scripts that the recipe uses, called once per tick in a loop of asyncio."""

import asyncio
import logging
import sys


class ScriptStrategyBase:
    markets = {}

    def logger(self):
        return logging.getLogger("hummingbot")

    def run(self):
        logging.basicConfig(stream=sys.stdout, level=logging.INFO)
        asyncio.run(self._tick())

    async def _tick(self):
        while True:
            self.on_tick()
            await asyncio.sleep(0.5)
