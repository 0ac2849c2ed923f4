-- Sessions of users who do not come back, that may have ended: more at a time than a batch can have
-- begun, so that what ended never gathers.
local due = call('ZRANGEBYSCORE', P .. 'z', '-inf', string.format('%.0f', NOW), 'LIMIT', 0, 512)
