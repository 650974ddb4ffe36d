"""The hooks of freqtrade's strategies that the recipe uses, in the order in which its worker calls them."""

import datetime
import time
import types


class IStrategy:
    def run(self):
        self.dp = types.SimpleNamespace(runmode=types.SimpleNamespace(value="backtest"))
        self.bot_loop_start(current_time=None)
        assert self.confirm_trade_entry("BTC/USDT", "limit", 0.01), "a backtest needs no daemon"
        assert self.kill_switch.reply == {}, "a backtest does not beat"
        self.dp.runmode.value = "live"
        while True:
            now = datetime.datetime.now(datetime.timezone.utc)
            self.bot_loop_start(current_time=now)
            entry = {"time_in_force": "GTC", "current_time": now, "entry_tag": None, "side": "long"}
            if self.confirm_trade_entry("FREQTRADE/USDT", "limit", 0.01, 60000.0, **entry):
                print("orders go out here", flush=True)
            time.sleep(0.5)
