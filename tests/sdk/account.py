"""The account of one test at the gateway: its key, and its entries in the usage log.

Without a gateway, or without its administration, the key is that of the services and the log is not read.
"""

import time
from decimal import Decimal

LOG_SECONDS = 60
# The endings of the paths for counting tokens. Such a request is free and has a separate session.
COUNTING = (":countTokens", "/count_tokens")


class Account:
    """A user with one key, created for one test. `price` is the price entry of its models, as in the public list."""

    def __init__(self, services, name, client_format, price):
        self.services, self.format = services, client_format
        self.price = {field: Decimal(str(value)) for field, value in price.items() if field != "mode"}
        self.key, self.key_id = services.key, None
        if services.admin:
            made = services.action("users/addUser", {"name": name})["defaultKey"]
            self.key, self.key_id = made["key"], made["id"]

    def log(self, count):
        """The log's entries without token counting, oldest first, once there are `count`; fails on another number."""
        end = time.monotonic() + LOG_SECONDS
        while True:
            found = self.services.action("usage-logs/getUsageLogs", {"keyId": self.key_id, "pageSize": 50})["logs"]
            found = [entry for entry in found if not entry["endpoint"].endswith(COUNTING)]
            if len(found) >= count or time.monotonic() > end:
                assert len(found) == count, f"{len(found)} entries, not {count}: {found}"
                return found[::-1]
            time.sleep(0.05)

    def check(self, model, count=1, streamed=False, **usage):
        """Checks that all went from this client's format to the provider's, in one session, and cost what it should.

        `usage` are token counts that the entries must have in sum. The session's name; None where there is no log.
        """
        if self.key_id is None:
            return None
        entries = self.log(count)
        kind = model.removeprefix("via-")
        wanted = {"model": model, "clientFormat": self.format, "providerFormat": kind, "providerName": kind,
                  "statusCode": 200, "outcome": "completed", "streamed": streamed, "estimated": False, "attempts": 1}
        for entry in entries:
            assert {name: entry[name] for name in wanted} == wanted
            assert entry["inputTokens"] > 0 and entry["outputTokens"] > 0
            assert Decimal(str(entry["costUsd"])) == self.cost(entry) > 0
        assert {name: sum(entry[name] for entry in entries) for name in usage} == usage
        sessions = {entry["sessionId"] for entry in entries}
        assert len(sessions) == 1 and None not in sessions, sessions
        return sessions.pop()

    def cost(self, entry):
        """What an entry should have cost."""
        price = self.price
        return (entry["inputTokens"] * price["input_cost_per_token"]
                + entry["outputTokens"] * price["output_cost_per_token"]
                + entry["cacheReadTokens"] * price["cache_read_input_token_cost"])
