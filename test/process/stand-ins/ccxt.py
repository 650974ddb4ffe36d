"""What the recipe calls of ccxt, in its place: prints what would be sent."""


class whitebit:
    def __init__(self, config):
        assert config["apiKey"] and config["secret"]

    def cancel_all_orders(self, symbol):
        print(f"all orders of {symbol} are cancelled", flush=True)

    def fetch_ticker(self, symbol):
        return {"symbol": symbol, "last": 60000.0}

    def create_order(self, symbol, kind, side, amount, price):
        print(f"orders go out here: {side} {amount} {symbol} {kind} at {price}", flush=True)
