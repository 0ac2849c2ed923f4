-- Holds a lock for longer, or gives it back (0 ms), if the node still has it. KEYS: 1 the lock.
-- ARGV: 1 the node, 2 how long (ms). Gives 1, or 0 if the node does not have it.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
