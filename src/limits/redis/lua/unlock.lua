-- Gives the lock back, if the node still holds it. KEYS: 1 the lock. ARGV: 1 the node.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
