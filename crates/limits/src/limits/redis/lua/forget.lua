-- Takes the counters out of effect, so that the nodes rebuild them from the ledger. KEYS: 1 the
-- epoch, 2 the nodes. ARGV: 1 what the names of every epoch begin with.
local before = redis.call('GET', KEYS[1])
if not before then return 0 end
for _, node in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  redis.call('DEL', ARGV[1] .. before .. ':n:' .. node)
end
return redis.call('DEL', KEYS[1])
