-- What every script begins with: names, time, spans. ARGV: 1 the names' beginning, 2 seven numbers:
-- the node's time (ms), 1 if that is the present (tests), session ttl (ms), the week's span and the
-- month's (ms). KEYS[1] is the hash of what the calling node runs. Names are made of ARGV[1]; all
-- have one hash tag, so that they are in one slot.
local call, P = redis.call, ARGV[1]
local NOW, is_test, TTL, WEEK_START, WEEK_END, MONTH_START, MONTH_END = struct.unpack('<ddddddd', ARGV[2])
-- The present is Redis' own. A call changes nothing if its time is more than 1 s ahead or 5 s
-- behind, or if its week or month has not begun: the answer is {'time', now}. It may be late, since
-- it may have waited.
if is_test == 0 then
  local time, sent = call('TIME'), NOW
  NOW = time[1] * 1000 + math.floor(time[2] / 1000)
  if sent - NOW > 1000 or sent - NOW < -5000 or WEEK_START > NOW or MONTH_START > NOW then
    return { 'time', string.format('%.0f', NOW) }
  end
end
-- A call made just before a week or month ended, and run just after, counts in the one that has
-- begun. The next call that knows its end brings it.
if WEEK_END <= NOW then WEEK_START, WEEK_END = WEEK_END, math.huge end
if MONTH_END <= NOW then MONTH_START, MONTH_END = MONTH_END, math.huge end
local MINUTE = math.floor(NOW / 60000)
local KEEP, BUCKETS_TTL = 1560, 97200000
